"""Git without a repository's say: one worktree per session, with a git directory of its own inside the sandbox.

No git of ours runs in a worktree that an agent can write: files are opened without following links, and git works on
copies in a directory of ours. GitPython finds repositories; every git command passes `git/run.py`.
"""
