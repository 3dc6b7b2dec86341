"""Tool calls on their way: judged, asked about, run, settled."""
