"""Exit codes of every verb, documented in the user guide."""

OK = 0
NO = 1
"""The answer is no: a check failed, a log is damaged, an invariant is broken."""
USAGE = 2
"""An argument cannot be used, or there is no terminal that a screen can be shown on."""
UNREACHABLE = 3
"""The supervisor cannot be reached or started, or a folder cannot be used."""
NOT_FOUND = 4
REFUSED = 5
"""The supervisor refused: stale decision, unsaved work, wrong state, not a repository …"""
CONFIG = 6
DEFECT = 70
"""An error of our own; what is printed belongs into a report."""
OUTPUT = 74
"""Standard output cannot be written (a full disk); what was asked for is done."""
INTERRUPTED = 130
