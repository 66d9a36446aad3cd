"""Conformance: test bed, adapters, suites, checkers, verdicts, evidence and the command line."""
