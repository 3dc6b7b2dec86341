"""The log of memories and its one writer."""
