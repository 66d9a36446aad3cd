"""What a campaign asks of a protocol: ``BINDING`` in ``bentpipe_fuzz.NAME.binding``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bentpipe_conformance.engine.suite import Suite, load_suites
from bentpipe_conformance.engine.trace import Trace
from hypothesis.strategies import SearchStrategy

from bentpipe_fuzz.campaign.script import Script, ScriptError, Step


@cache
def _misfit(verb: Callable[..., None], names: frozenset[str]) -> str:
    """Why a verb does not take arguments of these names; empty when it does."""
    try:
        inspect.signature(verb).bind(None, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Octets of a stream as a packet at the implementation's side carries them.

    Attributes:
        stream: tells connections apart.
        outgoing: whether the implementation sent it.
        start: offset of the first octet.
        octets: the data.
        packet: frame number.
        echoes: whether the connection's service sends back what it receives.
    """

    stream: object
    outgoing: bool
    start: int
    octets: bytes
    packet: int
    echoes: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """A protocol as a campaign sees it.

    Attributes:
        player: the tester's side of one conversation, given the suite's scripted peer. With its
            attribute ``expressive`` every packet that a verb makes on purpose is one of Scapy;
            ``longest`` limits what it waits, in seconds; every other conversation ends with
            ``rest()``, the others at once.
        verbs: what a player can do: functions of the player with keyword arguments, each with a
            usual value.
        modes: what a tester can be like, and the steps that it may take.
        label: what kind of packet this is, in a word: for triage and coverage.
        follow: the state of the implementation's connections after a packet, given the state
            before (empty at first), the packet, and whether it is outgoing.
        pieces: the data of a trace, packet by packet.
        refuse: the packet by which a host that knows no such connection answers one of the
            implementation's; None for none.
        lines: of each verb, given its arguments, the lines of a case; empty when nobody has
            written them.
        imports: what these lines need.
        proof: what a packet of the implementation tells, and one of the tester shows to have been
            told (it is outgoing or not), which nobody can know who is not at that address.
        short: a short conversation: an opening, at most four segments of data, and a closing, with
            an honest tester and no impairment; only its speed is measured.
        alike: the label where implementations are compared, without what is nobody's business but
            their own; :attr:`label` itself when None.
    """

    player: Callable[[Any], Any]
    verbs: Mapping[str, Callable[..., None]]
    modes: Mapping[str, SearchStrategy[Sequence[Step]]]
    label: Callable[[Any], str]
    follow: Callable[[str, Any, bool], str]
    pieces: Callable[[Trace[Any]], Iterable[Piece]]
    refuse: Callable[[Any], bytes | None]
    short: SearchStrategy[Sequence[Step]]
    lines: Mapping[str, Callable[..., list[str]]] = field(default_factory=dict)
    imports: str = ""
    proof: Callable[[Any, bool], frozenset[Hashable]] = lambda _packet, _outgoing: frozenset()
    alike: Callable[[Any], str] | None = None

    def behaviour(self, packet: Any) -> str:
        """What kind of packet this is where implementations are compared."""
        return (self.alike or self.label)(packet)

    def testers(self, modes: Iterable[str]) -> dict[str, SearchStrategy[Sequence[Step]]]:
        """These modes, or all of them when none is named.

        Raises:
            ScriptError: one is unknown.
        """
        wanted = set(modes)
        if unknown := sorted(wanted - set(self.modes)):
            known = ", ".join(self.modes)
            raise ScriptError(f"there is no mode {unknown[0]!r}; there are {known}")
        return {name: steps for name, steps in self.modes.items() if not wanted or name in wanted}

    def check(self, script: Script) -> None:
        """Refuse a script that this protocol cannot play.

        Raises:
            ScriptError: a mode, a verb or one of its arguments is unknown.
        """
        self.testers([script.mode])
        for step in script.steps:
            if step.verb not in self.verbs:
                raise ScriptError(f"there is no verb {step.verb!r}")
            if why := _misfit(self.verbs[step.verb], frozenset(step.given)):
                raise ScriptError(f"{step}: {why}")


def _module(suite: Suite) -> str:
    """Where the record of a suite's protocol is, or would be."""
    return f"bentpipe_fuzz.{suite.folder}.binding"


def _has_campaign(suite: Suite) -> bool:
    package = _module(suite).rpartition(".")[0]
    return bool(importlib.util.find_spec(package) and importlib.util.find_spec(_module(suite)))


def suites_with_campaign() -> list[str]:
    """The names of the suites whose protocol has a record; others have no campaign."""
    return [name for name, suite in load_suites().items() if _has_campaign(suite)]


@cache
def binding_of(suite: Suite) -> Binding:
    """The record of a suite's protocol.

    Raises:
        ScriptError: there is none.
    """
    if not _has_campaign(suite):
        raise ScriptError(f"{suite.protocol} has no campaign: nothing is in {_module(suite)}")
    found: Binding = importlib.import_module(_module(suite)).BINDING
    return found
