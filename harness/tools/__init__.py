"""The table of the built-in agent's tools: schema, validation, summary."""
