"""Judging TOY/1 implementations."""
