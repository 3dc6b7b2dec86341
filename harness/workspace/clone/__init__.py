"""What a clone has that a worktree has not: filters and submodules."""
