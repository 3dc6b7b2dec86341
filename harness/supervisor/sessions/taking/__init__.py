"""Taking a session's work: merged, pushed for review, handed back."""
