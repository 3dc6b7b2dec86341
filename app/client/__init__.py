"""The supervisor as screen and command line use it: connection, copies of its views, requests, logs."""
