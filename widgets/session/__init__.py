"""One session: its row in a list, its facts, how full its context is."""
