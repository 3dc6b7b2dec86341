"""What the built-in agent knows of the contract before work and of its evaluation."""
