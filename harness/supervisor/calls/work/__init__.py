"""The plan and checks of a session: run, kept, evaluated."""
