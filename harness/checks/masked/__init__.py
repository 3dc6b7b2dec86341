"""Checks whose exit code does not tell that what they ran failed."""
