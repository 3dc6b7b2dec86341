"""Open requests, grouped, with the head of the queue."""
