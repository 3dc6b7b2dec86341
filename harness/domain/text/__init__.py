"""Text as it may be shown: display-safe, formatted, without secrets."""
