"""Hypothesis strategies and campaigns for fuzzing transport implementations."""
