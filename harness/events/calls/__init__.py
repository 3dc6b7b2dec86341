"""Events of calls, jobs, requests to a person, and rules about them."""
