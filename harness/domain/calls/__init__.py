"""What a tool call is, and the states that it goes through."""
