"""The card of a request: what runs, what it changes, what is unusual."""
