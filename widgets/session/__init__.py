"""A session in rows and lines."""
