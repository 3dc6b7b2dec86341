"""What is known of a call's surroundings before it is judged."""
