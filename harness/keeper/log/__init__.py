"""The keeper's side of the log: who may append what, leases, checkpoints."""
