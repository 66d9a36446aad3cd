"""One folder per protocol, with the same names inside; the engine imports none of them."""
