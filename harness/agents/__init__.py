"""The interface that every agent implements, the process that hosts one, and when its work counts as done."""
