"""Reviewing work before it is taken: comments, viewed files, and publishing it as a pull request."""
