"""The schema of the session log: one frozen struct per event, and the table of them."""
