"""State and events as something to read: transcript, briefing, receipts, history."""
