"""The command line: verbs, their grammar, and what all of them share."""
