"""A fleet at rest: the supervisor's read operations over its files, without a process."""
