"""Money, pure: prices and the arithmetic of caps.

The ledger on disk belongs to `harness.supervisor.money.reservations`.
"""
