"""Memory outside the context: versions in a log of its own, lessons that wait to be believed, what a request shows."""
