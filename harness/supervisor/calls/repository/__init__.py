"""What a session's repository brings along, and what of its work is brought back."""
