"""What screens are built on: the interface of the application that they see, and the tables of their handlers."""
