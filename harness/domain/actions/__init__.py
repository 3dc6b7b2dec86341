"""What a call does to the world, as one frozen, hashed description."""
