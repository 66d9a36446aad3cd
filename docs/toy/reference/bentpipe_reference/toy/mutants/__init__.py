"""Mutants of the TOY reference, a module per group of requirements."""
