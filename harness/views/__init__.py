"""What a client is told: rows, replies, requests, notifications."""
