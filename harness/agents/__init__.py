"""What any agent is to the harness: the interface, the process that hosts one, and when its work counts as done."""
