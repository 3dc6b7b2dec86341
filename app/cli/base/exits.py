"""Exit codes of every verb."""

OK = 0
"""Done."""
NO = 1
"""The answer is no: a check failed, a log or an exported file is damaged, the supervisor is not running."""
USAGE = 2
"""An argument cannot be used, or there is no terminal that a screen can be shown on (``TERM=dumb`` included)."""
UNREACHABLE = 3
"""The supervisor cannot be reached or started, or a folder cannot be used."""
NOT_FOUND = 4
"""There is no such session, request or file."""
REFUSED = 5
"""Refused: a decision on something that has changed since, a dangerous action approved without its hash, unsaved work,
the wrong state, not a repository …
"""
CONFIG = 6
"""The configuration cannot be used; file, line and key are named."""
DEFECT = 70
"""A fault of Watchfloor's own; what is printed belongs in a report."""
OUTPUT = 74
"""Standard output cannot be written (a full disk); what was asked for is done."""
INTERRUPTED = 130
"""Interrupted."""
