"""What of a session's log a request shows the model, so that no context ever fills: pure, from data to data."""
