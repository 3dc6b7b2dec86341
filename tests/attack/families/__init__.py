"""One file per family of attacks; `tests.attack.registry` lists them."""
