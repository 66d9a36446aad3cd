"""Judging STP/1 implementations."""
