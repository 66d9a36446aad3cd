"""The suites: one engine, one record per protocol.

Everything that runs, judges, stores and reports cases asks the suite's record for what depends on
the protocol. Four modules of the protocol's folder supply it:

==================  ========================================  =================================
module              record                                    supplies
==================  ========================================  =================================
``probe``           ``DRIVER``, a :class:`Driver`             the scripted peer, nonsense probe
``interpreter``     ``INTERPRETER``, an :class:`Interpreter`  packets, flows, a checker's input
``report``          ``REPORTER``, a :class:`Reporter`         a ladder's rows, a plot
``observer``        ``OBSERVER``, an :class:`~.observing.Observer`  foreign captures; may be absent
``sides``           ``SIDES``, a :class:`~.observing.Sides`  two captures of a box; may be absent
==================  ========================================  =================================

They are imported when first used, so that a worker inside User-Mode Linux loads one protocol
only and no report.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from bentpipe_spec.registry import Requirement, load_requirements

from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.observing import Observer, Sides
from bentpipe_conformance.engine.peer import ScriptedPeer
from bentpipe_conformance.engine.probe import Interview, Probe, examine
from bentpipe_conformance.engine.scene import Scene
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.trace import Packet, Trace

_Part = TypeVar("_Part")


class UnknownSuite(ValueError):
    """There is no suite of that name; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What drives an implementation.

    Attributes:
        peer: the tester on a lane during one case, given the tester's address and a seed.
        interview: how such a tester asks the questions of the nonsense probe.
        roles: see :func:`~bentpipe_conformance.engine.probe.examine`.
        load: loads what would else be loaded when first used, in the midst of a case: that takes
            time, so that whether the tester is late would depend on the cases before.
        improvise: a script of such a tester that is drawn from its own numbers, where the self-test
            needs one: where implementations stand between two ends.
    """

    peer: Callable[[Lane, str, RunSettings, int], ScriptedPeer]
    interview: Callable[[Any], Interview[Any]]
    roles: Collection[str] = ()
    load: Callable[[], object] = lambda: None
    improvise: Callable[[Any], None] | None = None

    def probe(self, lane: Lane, settings: RunSettings) -> Probe:
        """The nonsense probe, see :mod:`bentpipe_conformance.engine.probe`."""
        peer = self.peer(lane, lane.begin(), settings, settings.seed)
        return examine(lane, settings, peer, self.interview(peer), self.roles)


def _nothing(*_: object) -> None:
    """What a protocol without such knowledge says."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What turns octets into what checkers are given.

    Attributes:
        dissect: the packet of this protocol in an IPv4 packet; raises :class:`MalformedPacket`.
        trusting: such a packet with its checksums assumed correct.
        read_flows: the connections of a trace.
        prepare: what checkers may know of a flow besides itself, for :attr:`Context.prepared`.
        refused: a finding when the handshake contradicts the conformance statement, else None; it
            looks at the flow and at the requirement's condition only.
        otherwise: the same flow as an implementation may have seen it that uses a freedom which its
            packets do not show; each is asked for only where a checker finds a violation.
        with_habits: the same flow as an implementation saw it that is known to deviate, by the
            names of its habits.
    """

    dissect: Callable[[bytes], Any]
    trusting: Callable[[Any], Any]
    read_flows: Callable[[Trace[Any]], Sequence[Any]]
    prepare: Callable[[Any], Any] = _nothing
    refused: Callable[[Any, Context[Any]], Finding | None] = _nothing
    otherwise: Callable[[Any], Iterator[Any]] = lambda _: iter(())
    with_habits: Callable[[Any, Iterable[str]], Any] = _nothing


@dataclass(frozen=True, slots=True)
class Reporter:
    """What the report shows of a trace.

    Attributes:
        describe: per frame number at the implementation's side, what to say of a packet and what
            is remarkable about it; packets outside any connection may be missing.
        plain: the same for a packet by itself.
        scene: what to plot, preferring the connection that has the given frame numbers; None when
            there is nothing to plot.
        legend: CSS class and meaning of what a plot draws.
        unit: what the vertical axis counts.
        counting: how the report's numbers count, a clause for its last sentence.
        layers: an IPv4 packet, layer by layer and field by field.
    """

    describe: Callable[[Trace[Any]], Mapping[int, tuple[str, tuple[str, ...]]]]
    plain: Callable[[Packet[Any]], tuple[str, tuple[str, ...]]]
    scene: Callable[[Trace[Any], Collection[int]], Scene | None]
    legend: Sequence[tuple[str, str]]
    unit: str
    counting: str
    layers: Callable[[bytes], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class Suite:
    """One protocol's suite.

    Attributes:
        name: short name, also the first part of its cases' identifiers.
        title: what people call it.
        protocol: the protocol judged, as a sentence calls it.
        profiles: its requirement profiles, the default one first.
        encapsulated: whether its packets travel in UDP or directly in IPv4, as a description says.
        package: the protocol's folder, ``bentpipe_conformance.protocols.NAME``.
        between: whether its implementations stand between two ends.
    """

    name: str
    title: str
    protocol: str
    profiles: tuple[str, ...]
    package: str
    encapsulated: bool = False
    between: bool = False

    @property
    def prefix(self) -> str:
        """What the identifiers of its requirements begin with."""
        return f"{self.name.upper()}-"

    @property
    def folder(self) -> str:
        """The name of the protocol's folder in every room."""
        return self.package.rpartition(".")[2]

    @property
    def cases(self) -> str:
        """Package of its cases."""
        return f"{self.package}.cases"

    @property
    def driver(self) -> Driver:
        """What drives an implementation."""
        return self._part("probe", Driver)

    @property
    def interpreter(self) -> Interpreter:
        """What turns octets into what checkers are given."""
        return self._part("interpreter", Interpreter)

    @property
    def reporter(self) -> Reporter:
        """What the report shows of a trace."""
        return self._part("report", Reporter)

    @property
    def observer(self) -> Observer | None:
        """What judging foreign captures needs to know, None when nobody has written it."""
        return self._optional("observer", Observer)

    @property
    def sides(self) -> Sides | None:
        """What judging captures of both sides of a box needs to know, None likewise."""
        return self._optional("sides", Sides)

    def _optional(self, module: str, kind: type[_Part]) -> _Part | None:
        found = importlib.util.find_spec(f"{self.package}.{module}")
        return None if found is None else self._part(module, kind)

    def _part(self, module: str, kind: type[_Part]) -> _Part:
        found = _named(f"{self.package}.{module}", kind.__name__.upper())
        assert isinstance(found, kind)
        return found

    def profile(self, asked: str | None) -> str:
        """The profile asked for, or the default.

        Raises:
            ValueError: the suite has no such profile.
        """
        if asked is None:
            return self.profiles[0]
        if asked not in self.profiles:
            known = ", ".join(self.profiles)
            raise ValueError(f"the suite {self.name} has no profile {asked!r}; it has {known}")
        return asked

    def requirements(self) -> Mapping[str, Requirement]:
        """Its requirements by identifier, including those that only models show."""
        return _requirements(self.prefix)

    def rests_on(self) -> Mapping[str, Collection[str]]:
        """By requirement, those of which a violation of it may be the consequence."""
        found = self.requirements().values()
        all_do = tuple(item.id for item in found if item.fundamental)
        return {item.id: () if item.fundamental else (*item.rests_on, *all_do) for item in found}

    def __str__(self) -> str:
        return self.name


@cache
def _named(module: str, name: str) -> object:
    return getattr(importlib.import_module(module), name)


@cache
def _requirements(prefix: str) -> Mapping[str, Requirement]:
    return {name: item for name, item in load_requirements().items() if name.startswith(prefix)}


@cache
def load_suites() -> Mapping[str, Suite]:
    """Every suite by name: the ``SUITE`` of each folder in ``bentpipe_conformance.protocols``.

    Raises:
        UnknownSuite: a folder has no such record.
    """
    protocols = importlib.import_module("bentpipe_conformance.protocols")
    found: dict[str, Suite] = {}
    for folder in pkgutil.iter_modules(protocols.__path__):
        name = f"{protocols.__name__}.{folder.name}.suite"
        if importlib.util.find_spec(name) is None:
            remedy = f"write SUITE in {name.replace('.', '/')}.py"
            raise UnknownSuite(f"the protocol {folder.name} has no suite; {remedy}")
        suite = importlib.import_module(name).SUITE
        found[suite.name] = suite
    return dict(sorted(found.items()))


def load_profiles() -> tuple[str, ...]:
    """Every profile of every suite, for the command line."""
    return tuple(profile for item in load_suites().values() for profile in item.profiles)


def suite_named(name: str) -> Suite:
    """The suite of a name.

    Raises:
        UnknownSuite: there is none.
    """
    suites = load_suites()
    if name not in suites:
        raise UnknownSuite(f"there is no suite {name!r}; there are {', '.join(suites)}")
    return suites[name]


def suite_of(identifier: str) -> Suite:
    """The suite of a case's or requirement's identifier (``stp/...``, ``STP-...``).

    Raises:
        UnknownSuite: it belongs to none.
    """
    return suite_named(identifier.replace("/", "-").partition("-")[0].lower())


def suite_in(package: str) -> Suite:
    """The suite whose protocol's folder is ``package``, or contains it.

    Raises:
        UnknownSuite: there is none.
    """
    for suite in load_suites().values():
        if f"{package}.".startswith(f"{suite.package}."):
            return suite
    raise UnknownSuite(f"{package} belongs to no protocol's folder")
