"""Mutants of the STP reference, a module per group of requirements."""
