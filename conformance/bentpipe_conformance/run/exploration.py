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


def found_case(identifier: str) -> Case:
    """A found conversation as a case: it targets nothing, and its script is in its replay file."""

    def script(_peer: Any) -> None:
        raise RuntimeError("a found conversation is played by 'bentpipe replay'")

    return Case(identifier, TITLE, TITLE, (), (), suite_of(identifier).profiles, script)


def explore(plan: Plan, bundle: Bundle, seconds: float, watcher: Watcher) -> None:
    """Explore for so long, unless this run has done so before, and add what is found to the bundle.

    Raises:
        BedError: the bed cannot be had again.
        BundleError: the bundle cannot be written.
    """
    if seconds > 0 and not bundle.exploration:
        importlib.import_module(CAMPAIGN).explore(plan, bundle, seconds, watcher)
