"""pytest plugin: fixtures and options of the conformance suites."""
