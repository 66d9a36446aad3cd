"""The checkers of STP/1, one per requirement."""
