"""Conformance suites: pytest modules whose tests are cases."""
