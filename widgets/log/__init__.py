"""Records and transcripts, line by line."""
