"""What the supervisor does by itself: health, alarms, notifications, invariants."""
