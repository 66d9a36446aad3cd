"""Hypothesis draws the same examples in every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("bentpipe", derandomize=True, deadline=None)
settings.load_profile("bentpipe")
