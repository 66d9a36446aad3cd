"""What a campaign finds."""

from __future__ import annotations


class Violation(Exception):
    """A run broke a requirement.

    Attributes:
        requirement: its identifier.
        sentence: how it shows.
        at: seconds of the run's clock, None for the end of the run.
    """

    def __init__(self, requirement: str, sentence: str, at: float | None = None) -> None:
        when = "" if at is None else f" (at {at:.6f} s)"
        super().__init__(f"{requirement}: {sentence}{when}")
        self.requirement = requirement
        self.sentence = sentence
        self.at = at
