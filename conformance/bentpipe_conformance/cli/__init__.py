"""The command ``bentpipe``."""
