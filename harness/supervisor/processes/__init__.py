"""The processes that the supervisor starts or adopts, and its links to them."""
