"""The configuration: sections, values, profiles, endpoints, keys, phrases."""
