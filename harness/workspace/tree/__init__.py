"""A session's worktree: made, walked, compared, removed."""
