"""Value types that everything speaks of: caps, states, calls, problems, display-safe text. No I/O."""
