"""One module per screen; each is imported when it is first opened."""
