"""Evidence: captures on disk, the bundle a run leaves, and what is computed from it."""
