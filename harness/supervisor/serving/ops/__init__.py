"""What clients and brains may ask, one table of operations for each subject."""
