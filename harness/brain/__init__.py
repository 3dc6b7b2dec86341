"""The brain: folds a session's log, thinks through the model API, and asks the keeper to append.

It holds no state of its own.
"""
