"""The long demo's work: a small library of forty-two functions, as a plan, its tests, and what a model writes."""
