"""What the fold knows of a session, one record for each concept."""
