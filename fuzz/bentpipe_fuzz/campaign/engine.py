"""A campaign: conversations until a limit, each judged; what is found is shrunk and sorted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bentpipe_conformance.engine.execution import Lateness
from bentpipe_conformance.engine.lane import Captured, Lane, LaneError
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Suite

from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.oracle import Signature
from bentpipe_fuzz.campaign.plan import Planner
from bentpipe_fuzz.campaign.run import Conversation, play, seldom_collecting
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.sharing import Shared
from bentpipe_fuzz.campaign.shrinking import MOST_RUNS, shrunk_script

MOST_FAILED_STARTS = 3
"""How often in a row a lane may fail to open before the campaign ends with what it has."""

SCRIPT_BROKE = "the script broke"
"""How :func:`~bentpipe_conformance.engine.execution.run_case` begins to say that."""

MOST_OF_ONE = 3
"""Signatures of one requirement that are made small; more of them are counted only."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The first conversation that had a finding of some signature, made small.

    Attributes:
        signature: see :data:`Signature`.
        sentence: how the requirement is violated.
        packets: frame numbers of the finding.
        first: the script that was drawn.
        script: what is left of it.
        captured: the packets when the short one was played.
        crafted: its odd packets, as expressions of Scapy.
        example: number of the conversation in the campaign, from 1.
        shrink_runs, shrink_seconds: what making it small took.
        repeats: whether it was found again when played again.
    """

    signature: Signature
    sentence: str
    packets: tuple[int, ...]
    first: Script
    script: Script
    captured: tuple[Captured, ...]
    crafted: tuple[str, ...]
    example: int
    shrink_runs: int = 0
    shrink_seconds: float = 0.0
    repeats: bool = True


@dataclass(slots=True)
class Tally:
    """The results of a campaign so far.

    Attributes:
        conversations: played, without those of shrinking.
        packets: at the implementation's side.
        found: discoveries by signature.
        seen: how many conversations had a signature.
        reached: states and the packets that met them.
        met: requirements that a checker found met at least once.
        link_seconds: seconds on the lane's clock.
        seconds: of the wall clock, all in all.
        restarts: lanes that were replaced because the implementation ended.
        problem: why the campaign ended early; empty when it did not.
        broken: the first script that raised an exception of its own, and which; a defect of the
            campaign.
        note: what of the shared conversations was left out, or why they are shared no more.
    """

    conversations: int = 0
    packets: int = 0
    found: dict[Signature, Discovery] = field(default_factory=dict)
    seen: Counter[Signature] = field(default_factory=Counter)
    reached: set[tuple[str, str]] = field(default_factory=set)
    met: set[str] = field(default_factory=set)
    link_seconds: float = 0.0
    seconds: float = 0.0
    restarts: int = 0
    problem: str = ""
    broken: str = ""
    note: str = ""


class Campaign:
    """A campaign on one lane at a time.

    Args:
        suite: of the protocol.
        open_lane: opens a lane; again when an implementation has ended.
        settings: of the run.
        seed: of everything random.
        modes: which modes, or all.
        lateness: see :func:`~bentpipe_conformance.engine.execution.run_case`.
        shrink_runs: how many runs making a finding small may take; 0 for none.
        patience: the end of every so many conversations is waited for; of none if 0.
        before: is told every script before it is played.
        shared: conversations that others keep, which are played, too; None for none.

    Attributes:
        tally: the results so far.
    """

    def __init__(
        self, suite: Suite, open_lane: Callable[[], Lane], settings: RunSettings, seed: int, *,
        modes: Sequence[str] = (), lateness: Lateness | None = None, shrink_runs: int = MOST_RUNS,
        patience: int = 1, before: Callable[[Script], None] = lambda _: None,
        shared: Shared | None = None,
    ) -> None:  # fmt: skip
        self.tally = Tally()
        self._shared = shared
        self._planner = Planner(suite.name, binding_of(suite).testers(modes), seed, shared)
        self._open_lane = open_lane
        self._settings = settings
        self._lateness = lateness
        self._patience = patience
        self._before = before
        self._shrink_runs = shrink_runs
        self._lane: Lane | None = None

    def run(self, goes_on: Callable[[Tally], bool]) -> Iterator[Discovery | None]:
        """Play conversations while ``goes_on``; after each its discovery, or None.

        The campaign can be left at any moment: the tally is always complete.
        """
        began = time.perf_counter()
        try:
            with seldom_collecting():
                for script in self._planner.scripts():
                    if not goes_on(self.tally):
                        return
                    conversation = self._played(script)
                    if conversation is None:
                        return
                    fresh = self._count(conversation)
                    self.tally.seconds = time.perf_counter() - began
                    for signature in fresh:
                        yield self._discovered(conversation, signature)
                        self.tally.seconds = time.perf_counter() - began
                    if not fresh:
                        yield None
        finally:
            self.close()

    def run_one(self, script: Script) -> list[Discovery]:
        """Play one script; what it shows, not made small."""
        try:
            conversation = self._played(script)
            if conversation is None:
                return []
            self._shrink_runs = 0
            return [self._discovered(conversation, name) for name in self._count(conversation)]
        finally:
            self.close()

    def close(self) -> None:
        """Take down the lane."""
        if self._lane is not None:
            self._lane.close()
            self._lane = None

    def _played(self, script: Script, *, expressive: bool = False) -> Conversation | None:
        """A conversation on a lane that works; None when there is none."""
        why = ""
        for _ in range(MOST_FAILED_STARTS):
            try:
                found = self._on_lane(script, expressive)
            except LaneError as error:
                why = str(error)
                self.close()
                continue
            if not found.outcome.broken or found.outcome.broken.startswith(SCRIPT_BROKE):
                return found
            why = found.outcome.broken
            self.close()
        self.tally.problem = f"the bed failed {MOST_FAILED_STARTS} times: {why}"
        return None

    def _on_lane(self, script: Script, expressive: bool) -> Conversation:
        self._before(script)
        if self._lane is None:
            self._lane = self._open_lane()
        found = play(
            script, self._lane, self._settings, lateness=self._lateness, expressive=expressive,
            patient=bool(self._patience) and script.seed % self._patience == 0,
        )  # fmt: skip
        if found.outcome.died:
            self.tally.restarts += 1
            self.close()
        return found

    def _count(self, conversation: Conversation) -> list[Signature]:
        """Count a conversation; return the signatures that are new."""
        tally = self.tally
        tally.conversations += 1
        if conversation.outcome.broken:
            tally.broken = tally.broken or f"{conversation.outcome.broken} ({conversation.script})"
        tally.packets += sum(item.point == "iut" for item in conversation.outcome.captured)
        tally.link_seconds += conversation.outcome.link_seconds
        if conversation.reached - tally.reached or conversation.met - tally.met:
            self._planner.corpus.append(conversation.script)
            if self._shared is not None:
                self._shared.keep(conversation.script)
        tally.note = "" if self._shared is None else self._shared.note
        tally.reached |= conversation.reached
        tally.met |= conversation.met
        fresh = [name for name in conversation.findings if name not in tally.seen]
        tally.seen.update(conversation.findings.keys())
        of_each = Counter(name[0] for name in tally.found)
        return [name for name in fresh if of_each[name[0]] < MOST_OF_ONE]

    def _discovered(self, conversation: Conversation, signature: Signature) -> Discovery:
        """Make a conversation with a finding small."""
        began = time.perf_counter()
        requirement, runs = signature[0], 0

        def still_fails(script: Script) -> bool:
            nonlocal runs
            runs += 1
            again = self._played(script)
            return again is not None and again.breaks(requirement)

        script = conversation.script
        if self._shrink_runs:
            script = shrunk_script(script, still_fails, self._shrink_runs)
        # Once more, for the expressions of the packets.
        last = self._played(script, expressive=True)
        repeats = last is not None and last.breaks(requirement)
        if last is None or not repeats:
            last, script = conversation, conversation.script
        finding = next(item for item in last.findings.values() if item.requirement == requirement)
        found = Discovery(
            signature, finding.sentence, finding.packets, conversation.script, script,
            last.outcome.captured, tuple(item.expression for item in last.outcome.crafted),
            self.tally.conversations, runs, time.perf_counter() - began, repeats,
        )  # fmt: skip
        self.tally.found[signature] = found
        return found
