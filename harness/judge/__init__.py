"""The judge: what it is shown, what it answers, and how well it knows bad work from good. Pure."""
