"""Files in TOML that a person writes: read into structs, with errors that name file, line, key and value."""
