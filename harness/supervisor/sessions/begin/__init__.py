"""How sessions begin: launched, forked, continued."""
