"""The one exception of the bed, and what its sentences quote."""

from __future__ import annotations

from bentpipe_conformance.engine.lane import LaneError

_QUOTED = 400
"""Characters of a line worth quoting."""


class BedError(LaneError):
    """The bed, not the implementation under test, failed.

    The message is one sentence for the user: what is wrong and, where one exists, the command that
    remedies it.
    """


def last_line(text: str) -> str:
    """The last line of a program's output that is not empty, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".")[:_QUOTED] if lines else "no reason given"


def quoted(text: str) -> str:
    """What a program's output tells, as an insertion into a sentence; empty without output.

    That is the last line that names an error, as nft's come before the rule that they are about and
    a line of carets, or else the last line with a word.
    """
    lines = text.splitlines()
    told = [line for line in lines if "rror:" in line] or [
        line for line in lines if any(map(str.isalpha, line))
    ]
    return f" (it said: {last_line(told[-1] if told else text)})" if text.strip() else ""
