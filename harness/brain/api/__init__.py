"""One request to the model API: drafted, sent, put together, judged by what came."""
