"""Mutants of the TCP reference, a module per group of requirements."""
