"""One reducer per kind of event: record and state to state."""
