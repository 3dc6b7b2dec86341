"""The screen's and the command line's end of the supervisor's socket."""
