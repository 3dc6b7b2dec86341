"""One call from its action to its outcome: spawned, confined, run, its output kept.

`spawn.py` is all that the keeper calls. Standard library only; `runner.py` and `files.py` run inside the sandbox.
"""
