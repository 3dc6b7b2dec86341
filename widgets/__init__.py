"""Widgets by what they show; each is given views and posts messages."""
