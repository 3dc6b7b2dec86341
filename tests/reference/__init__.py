"""``make reference``: the pages of `docs/reference` that are made from the code, so that they cannot drift from it."""
