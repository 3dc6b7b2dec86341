"""The harness: everything that runs agents, without a screen."""
