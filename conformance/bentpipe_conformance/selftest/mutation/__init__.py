"""Mutants that a machine makes of the references' source, and which of them the suites kill.

Unlike the mutants in ``bentpipe_reference.NAME.mutants``, which somebody chose for a requirement,
these are all the small changes that a fixed set of operators finds in the protocol modules.
"""
