"""Roles: what somebody who works or judges for a session is told, may use and may spend, as versioned data."""
