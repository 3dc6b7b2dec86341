"""Events to state: the one fold, its snapshots, and the score."""
