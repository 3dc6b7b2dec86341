"""Policy: facts and a proposed call → action → verdict. Pure; see ``docs/architecture.md``."""
