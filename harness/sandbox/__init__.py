"""What touches the world: the fence around one tool call and the tools themselves."""
