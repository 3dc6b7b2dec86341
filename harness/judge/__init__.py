"""A second model that reads finished work: what it is shown, what it answers, how well it tells bad from good. Pure."""
