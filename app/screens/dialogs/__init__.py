"""Questions above a screen: forms, choices, confirmations."""
