"""Exporting a session to one file, and reading and checking it elsewhere."""
