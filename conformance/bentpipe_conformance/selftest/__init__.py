"""The self-test: every mutant must fail on its target, the true reference must not."""
