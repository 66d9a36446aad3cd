"""A replay file as a case for the suite: a draft for a person to finish."""

from __future__ import annotations

import re
import textwrap

from bentpipe_fuzz.campaign.binding import Binding
from bentpipe_fuzz.campaign.replay import Replay, ReplayError
from bentpipe_fuzz.campaign.script import Step


def as_case(told: Replay, binding: Binding) -> str:
    """Python that does what the script does.

    Impairments of the link become comments: a case loses packets itself, by what it looks at
    (``losing=``), and which packet of its own conversation that is has to be decided.

    Raises:
        ReplayError: the protocol cannot write cases, or the requirement is not one of a suite.
    """
    if not binding.lines:
        raise ReplayError("This protocol cannot write cases yet.")
    if told.requirement.startswith("FUZZ-"):
        raise ReplayError(f"{told.requirement} is no requirement that a case could target.")
    body = [f"# The link: {item}." for item in told.script.link]
    for step in told.script.steps:
        body += _lines(binding, step)
    name = re.sub(r"\W+", "_", told.requirement.lower()).strip("_")
    purpose = textwrap.fill(f"{told.sentence[:1].upper()}{told.sentence[1:]}.", 88)
    return "\n".join(
        [
            binding.imports.rstrip(),
            "",
            "",
            f'@case("{told.requirement}")',
            f"def test_found_{name}(peer: Peer) -> None:",
            *textwrap.indent(f'"""{purpose}"""', "    ").splitlines(),
            *(f"    {line}" for line in body),
            "",
        ]
    )


def _lines(binding: Binding, step: Step) -> list[str]:
    """The lines of a step; a comment where nobody has written them for these arguments."""
    try:
        return binding.lines[step.verb](**step.given)
    except (KeyError, TypeError):
        return [f"# To be written by hand: {step}."]
