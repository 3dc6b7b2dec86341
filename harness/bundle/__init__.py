"""A session as one file that travels."""
