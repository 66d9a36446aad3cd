"""Boxes that split TCP connections: PEP/1."""
