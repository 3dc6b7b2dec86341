"""Git without the repository's say: invocations, configuration, locks, objects."""
