"""What Python's ``os`` does not offer of Linux: raw system calls, and processes as /proc shows them.

Standard library only; also bound into the sandbox.
"""
