"""A session's worktree as files that leave this machine."""
