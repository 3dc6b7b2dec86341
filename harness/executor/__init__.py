"""One call: spawn, run, file tools, confined paths, push, preconditions."""
