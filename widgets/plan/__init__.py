"""A plan and its progress."""
