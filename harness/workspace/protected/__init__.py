"""Files that decide whether work is done: found, compared, put back."""
