"""Replaying STP connections from the implementation's side of the link."""
