"""Base classes for line-API widgets: painting, lists, keys."""
