"""Policy, pure: facts and a proposed call become an action, and the action a verdict."""
