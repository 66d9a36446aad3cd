"""Checking the TLA+ models: the tool, its runs, what each must show, and counterexamples drawn."""
