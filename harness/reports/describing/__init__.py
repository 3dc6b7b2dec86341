"""One line for each event, in words."""
