"""The reference of TOY/1."""
