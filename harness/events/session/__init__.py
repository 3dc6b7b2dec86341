"""Events of a session as a whole: its life, its money, its alarms."""
