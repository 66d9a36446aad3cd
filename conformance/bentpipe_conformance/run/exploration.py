"""A campaign beside the scripted cases of a run: what it finds is a case of the bundle as well.

The campaign itself is in a room above this one (``bentpipe_fuzz``) and is found by its name, as the
command line finds its commands.
"""

from __future__ import annotations

import importlib
from typing import Any

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.suite import suite_of
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.evidence.serialization import RecordError, loads
from bentpipe_conformance.run.plan import Plan
from bentpipe_conformance.run.watcher import Watcher

CAMPAIGN = "bentpipe_fuzz.campaign.exploring"
"""The module whose ``explore`` is called."""

TITLE = "A conversation that a campaign found"


def found_id(suite: str, name: str) -> str:
    """The identifier of a found conversation as a case of a bundle."""
    return f"{suite}/found/{name}"


def is_found(identifier: str, suite: str) -> bool:
    """Whether a case is a found conversation of a suite."""
    return identifier.startswith(f"{suite}/found/") and identifier.count("/") == 2


def requirement_of(identifier: str) -> str:
    """The requirement, or oracle of a campaign, that a found conversation violates."""
    return identifier.rpartition("/")[2].rpartition("-")[0]


def found_case(identifier: str, replay: str = "") -> Case:
    """A found conversation as a case, whose script is in its replay file.

    It targets the requirement that its name has, unless that is an oracle of campaigns; its purpose
    is the story that the text of its replay file tells.
    """
    suite, requirement = suite_of(identifier), requirement_of(identifier)
    targets = (requirement,) if requirement in suite.requirements() else ()

    def script(_peer: Any) -> None:
        raise RuntimeError("a found conversation is played by 'bentpipe replay'")

    return Case(identifier, TITLE, _story(replay) or TITLE, targets, (), suite.profiles, script)


def _story(replay: str) -> str:
    """What happens in a conversation, without its packets, which a report draws."""
    try:
        told = loads(replay)["story"] if replay else []
    except (RecordError, KeyError, TypeError):
        return ""
    lines = [str(line) for line in told] if isinstance(told, list) else []
    end = next((at for at, line in enumerate(lines) if line.startswith("The packets")), len(lines))
    return "\n".join(lines[:end]).strip()


def explore(plan: Plan, bundle: Bundle, seconds: float, watcher: Watcher) -> None:
    """Explore for so long, unless this run has done so before, and add what is found to the bundle.

    Raises:
        BedError: the bed cannot be had again.
        BundleError: the bundle cannot be written.
    """
    if seconds > 0 and not bundle.exploration:
        importlib.import_module(CAMPAIGN).explore(plan, bundle, seconds, watcher)
