"""What the processes agree on: paths, locks, messages, and the clients that send them."""
