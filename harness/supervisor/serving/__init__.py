"""The supervisor's socket: clients, operations, pushes."""
