"""Events of the conversation with the model, and of what a request shows."""
