"""What a launch asks for: form, command line, history."""
