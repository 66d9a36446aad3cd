"""RWBP/1 between two endpoints."""
