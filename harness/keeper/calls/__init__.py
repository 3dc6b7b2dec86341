"""Calls as the keeper runs them: gate, start, watch, spool, jobs, undo."""
