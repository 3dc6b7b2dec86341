"""Events of the work's way: commits, checkpoints, undo, merges, pull requests."""
