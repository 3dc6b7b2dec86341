"""The application itself: start, screens on top, the tick."""
