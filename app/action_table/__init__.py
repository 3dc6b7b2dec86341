"""Every action a key can cause: one table, from which keys, help and palette are made."""
