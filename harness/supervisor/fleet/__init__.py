"""All sessions of the state folder: found, folded, cached, told about."""
