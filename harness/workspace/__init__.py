"""Workspaces: one git worktree per session, with a private git directory inside the fence; see
``docs/architecture.md``.
"""
