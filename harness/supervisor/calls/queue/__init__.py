"""Requests to a person: cards, decisions, grants, questions."""
