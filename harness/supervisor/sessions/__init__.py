"""The life of sessions: launched, driven, stopped, continued, merged, removed."""
