"""The scenarios that ship with the simulator, one module for each kind; every module lists its own in ``SCENARIOS``."""
