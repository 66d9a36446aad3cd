"""The cases of the suite toy."""
