"""Who owes whom after a shared trip."""

__version__ = "0.2.0"
