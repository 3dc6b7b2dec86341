"""Views as lines of text for screens and verbs."""
