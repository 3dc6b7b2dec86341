"""What screens are built on: what the application promises them, and their handlers."""
