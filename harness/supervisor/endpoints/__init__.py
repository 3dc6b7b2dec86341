"""Model endpoints: their keys, and the gates before them."""
