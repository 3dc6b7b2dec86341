"""Panes of the floor: tiling, titles, what each shows."""
