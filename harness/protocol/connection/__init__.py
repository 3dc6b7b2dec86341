"""Connections between processes: frames, exchanges, operations, clients."""
