"""Plans as files: their spellings, their criteria, and what of them is not read."""
