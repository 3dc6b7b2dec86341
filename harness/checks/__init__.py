"""What decides that work is done: protected files, check scripts, test counts."""
