"""Split connections: what reads their packets."""
