"""The terminal application and the command line of Watchfloor."""
