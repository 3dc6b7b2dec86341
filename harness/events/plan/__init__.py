"""Events of the plan: its entries, checks, contract, evaluation, phases."""
