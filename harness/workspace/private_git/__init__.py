"""A session's own git directory, and what of the repository it shows."""
