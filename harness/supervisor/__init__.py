"""The supervisor: one process per state folder that drives all sessions."""
