"""The vault: states of a session's worktree, kept out of the agent's reach.

Standard library only; see ``docs/decisions/010``.
"""
