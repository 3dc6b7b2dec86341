"""Differences between two texts or trees."""
