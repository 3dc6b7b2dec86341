"""Plan files, their criteria and gates, and what is due next. Pure."""
