"""RWBP: its campaign, which stands on that of TCP."""
