"""The keeper's event loop: timers, connections, children, requests."""
