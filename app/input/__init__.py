"""Keys and pastes, and whether a hand pressed them."""
