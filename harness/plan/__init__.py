"""Done is written down first: what may not be changed by who is measured by it, how many tests ran, plans and their
criteria. Pure.
"""
