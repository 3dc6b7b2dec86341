"""The sandbox around one call: what the kernel is asked to hold, and what it holds here (`enforcement.py`).

bubblewrap builds it once for a session; each call is born into a copy of it (`namespace_clone.py`) with private mounts,
Landlock and seccomp. Network leaves only through the egress proxy, to the hosts that the action names.
"""
