"""Paths of a state graph as scripts of the environment, and scripts as executions.

One script has many executions; they differ in the order of steps that it leaves open.
:meth:`Projection.executions` finds all edges that they take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bentpipe_conformance.models.graph import Edge, Graph
from bentpipe_conformance.models.script import Journey, Layout, Message, Script, copy_of
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.values import NotAValue, parse_value

_CHANGING = "age"
"""A field of messages that changes while they are in flight."""


class _Step(NamedTuple):
    """What an edge does to the channels."""

    left: tuple[int, int] | None  # channel and position of the message that left it
    lost: bool
    doubled: tuple[int, int] | None  # channel and position of the message that got a copy
    sent: tuple[tuple[int, str, int | None], ...]  # channel, kind and number
    timer: int | None


class _Position(NamedTuple):
    """How far an execution is: messages in flight, counts by ``sent`` and ``taken``, expiries."""

    under_way: tuple[tuple[Message, ...], ...]
    counts: tuple[tuple[str, int], ...]
    expired: tuple[int, ...]

    def count(self, what: str) -> int:
        """How many messages were ``sent KIND`` or ``taken KIND``."""
        return next((number for name, number in self.counts if name == what), 0)


class Projection:
    """Turns paths of one graph into scripts, and scripts into executions."""

    def __init__(self, graph: Graph, layout: Layout) -> None:
        """Prepare a graph whose states hold the variables of the layout's channels.

        Raises:
            ToolProblem: a channel holds something other than a sequence of messages.
        """
        self._graph = graph
        self._layout = layout
        self._timers = {action: at for at, action in enumerate(layout.timers)}
        self._bases = tuple(layout.timers.values())
        self._read: dict[str, tuple[Any, ...]] = {}
        self._known: dict[tuple[str, ...], _Step] = {}
        self._steps = [self._step(edge) for edge in graph.edges]
        self.distinct = list(dict.fromkeys(self._steps))
        numbers = {step: at for at, step in enumerate(self.distinct)}
        self._kinds = [numbers[step] for step in self._steps]
        self._leaving: list[list[int]] = [[] for _ in graph.states]
        for number, edge in enumerate(graph.edges):
            self._leaving[edge.source].append(number)

    def journey(self, path: Sequence[int]) -> Journey:
        """What became of each transmission on a path from an initial state."""
        position = self.start()
        channels = range(len(self._layout.channels))
        journey = Journey(
            [[] for _ in channels], [[] for _ in channels], set(), set(), {},
            [[] for _ in self._timers],
        )  # fmt: skip
        for number in path:
            step = self._steps[number]
            if step.left is not None:
                channel, at = step.left
                message = position.under_way[channel][at]
                if step.lost:
                    journey.lost.add(message)
                else:
                    journey.arrived[channel].append(message)
            if step.doubled is not None:
                channel, at = step.doubled
                message = position.under_way[channel][at]
                journey.doubled.add(message)
                sent = journey.sent[channel]
                sent.insert(sent.index(message) + 1, copy_of(message))
            if step.timer is not None:
                journey.expiries[step.timer].append(position.count(self._bases[step.timer]))
            position = _after(position, step)
            for channel in channels:
                carried = [what for which, _, what in step.sent if which == channel]
                under_way = position.under_way[channel]
                new = under_way[len(under_way) - len(carried) :]
                journey.sent[channel] += new
                journey.numbers.update(zip(new, carried, strict=True))
        return journey

    def executions(self, script: Script) -> set[int]:
        """Every edge that some execution under a script takes.

        Nothing is lost, overtaken or expires after what the script says.
        """
        moves = _Moves(self, script)
        edges, kinds = self._graph.edges, self._kinds
        taken: set[int] = set()
        todo = [(state, 0) for state in self._graph.initial]
        known = set(todo)
        while todo:
            state, position = todo.pop()
            for number in self._leaving[state]:
                after = moves[position, kinds[number]]
                if after is None:
                    continue
                taken.add(number)
                there = (edges[number].target, after)
                if there not in known:
                    known.add(there)
                    todo.append(there)
        return taken

    def caps(self, script: Script) -> dict[str, int]:
        """Up to where counts matter; what is beyond all that a script names is alike."""
        caps: dict[str, int] = {}
        overtaking = (message for message, _ in script.overtaking)
        for kind, nth in (*script.lost, *script.doubled, *overtaking):
            caps[f"sent {kind}"] = max(caps.get(f"sent {kind}", 0), nth)
        for basis, moments in zip(self._bases, script.expiries, strict=True):
            caps[basis] = max((caps.get(basis, 0), *moments))
        return caps

    def permits(
        self, script: Script, overtaking: Mapping[Message, int], position: _Position, step: _Step
    ) -> bool:
        """Whether a script lets a step happen."""
        if step.doubled is not None:
            channel, at = step.doubled
            message = position.under_way[channel][at]
            return message in script.doubled and copy_of(message) not in position.under_way[channel]
        if step.left is not None:
            channel, at = step.left
            ahead = position.under_way[channel][:at]
            message = position.under_way[channel][at]
            if (message in script.lost) != step.lost:
                return False
            if message in script.doubled and copy_of(message) not in position.under_way[channel]:
                return False
            if not step.lost and overtaking.get(message, 0) != sum(
                other not in script.lost for other in ahead
            ):
                return False
        if step.timer is not None:
            due = self._due(script, position, step.timer)
            return due is not None and due == position.count(self._bases[step.timer])
        return all(self._in_time(script, position, step, at) for at in range(len(self._bases)))

    @staticmethod
    def _due(script: Script, position: _Position, timer: int) -> int | None:
        moments = script.expiries[timer]
        done = position.expired[timer]
        return moments[done] if done < len(moments) else None

    def _in_time(self, script: Script, position: _Position, step: _Step, timer: int) -> bool:
        """Whether a step does not go past a moment at which a timer has yet to expire."""
        due = self._due(script, position, timer)
        if due is None:
            return True
        basis = self._bases[timer]
        return position.count(basis) < due or basis not in _counted(position, step)

    def start(self) -> _Position:
        """Where executions begin."""
        return _Position(tuple(() for _ in self._layout.channels), (), (0,) * len(self._timers))

    def _step(self, edge: Edge) -> _Step:
        before, after = self._graph.states[edge.source], self._graph.states[edge.target]
        texts = []
        for channel in self._layout.channels:
            try:
                texts += [before[channel.variable], after[channel.variable]]
            except KeyError:
                raise ToolProblem(f"the model has no variable {channel.variable!r}.") from None
        key = (edge.action, *texts)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compared(edge.action, texts)
        return found

    def _compared(self, action: str, texts: Sequence[str]) -> _Step:
        left: tuple[int, int] | None = None
        doubled: tuple[int, int] | None = None
        sent: list[tuple[int, str, int | None]] = []
        for at, channel in enumerate(self._layout.channels):
            old, new = self._contents(texts[2 * at]), self._contents(texts[2 * at + 1])
            if action in self._layout.duplications:
                twice = (n for n in range(len(old)) if old[: n + 1] + old[n:] == new)
                if (found := next(twice, None)) is not None:
                    doubled = (at, found)
                continue
            gone = _gone(old, new)
            if gone is not None:
                left = (at, gone)
            sent += [
                (at, channel.kind or str(item["type"]), _number(item))
                for item in new[len(old) - (gone is not None) :]
            ]
        lost = action in self._layout.losses
        return _Step(left, lost, doubled, tuple(sent), self._timers.get(action))

    def _contents(self, text: str) -> tuple[Any, ...]:
        found = self._read.get(text)
        if found is None:
            try:
                value = parse_value(text)
            except NotAValue as error:
                raise ToolProblem(f"a channel of the model cannot be read: {error}.") from error
            if not isinstance(value, tuple):
                raise ToolProblem(
                    f"a channel of the model holds {text[:40]!r}, which is not a sequence."
                )
            found = self._read[text] = tuple(map(_bare, value))
        return found


class _Moves(dict[tuple[int, int], int | None]):
    """Where each distinct step leads from each position under a script; None: not permitted.

    Positions are numbered from 0, the start, as they are met: they are few, the states of a model
    that share one are many.
    """

    def __init__(self, projection: Projection, script: Script) -> None:
        super().__init__()
        self._projection = projection
        self._script = script
        self._overtaking = dict(script.overtaking)
        self._caps = projection.caps(script)
        self._positions = [projection.start()]
        self._numbers = {self._positions[0]: 0}

    def __missing__(self, key: tuple[int, int]) -> int | None:
        position, step = self._positions[key[0]], self._projection.distinct[key[1]]
        found: int | None = None
        if self._projection.permits(self._script, self._overtaking, position, step):
            after = _after(position, step, self._caps)
            found = self._numbers.setdefault(after, len(self._positions))
            if found == len(self._positions):
                self._positions.append(after)
        self[key] = found
        return found


def _after(position: _Position, step: _Step, caps: Mapping[str, int] | None = None) -> _Position:
    """Where a step leads.

    Counts stop one above their cap, and without a cap count nothing, or never stop where ``caps``
    is None.
    """
    counts = dict(position.counts)

    def raised(what: str) -> int:
        if caps is not None and what not in caps:
            return 1
        number = counts.get(what, 0)
        counts[what] = (number if caps is None else min(number, caps[what])) + 1
        return counts[what]

    under_way = list(position.under_way)
    for what in _counted(position, step):
        if what.startswith("taken "):
            raised(what)
    if step.left is not None:
        channel, at = step.left
        under_way[channel] = under_way[channel][:at] + under_way[channel][at + 1 :]
    if step.doubled is not None:
        channel, at = step.doubled
        queue = under_way[channel]
        under_way[channel] = (*queue[: at + 1], copy_of(queue[at]), *queue[at + 1 :])
    for channel, kind, _ in step.sent:
        under_way[channel] += (Message(kind, raised(f"sent {kind}")),)
    expired = tuple(number + (at == step.timer) for at, number in enumerate(position.expired))
    return _Position(tuple(under_way), tuple(sorted(counts.items())), expired)


def _counted(position: _Position, step: _Step) -> list[str]:
    """What a step counts: messages taken in and sent, by kind."""
    counted = [f"sent {kind}" for _, kind, _ in step.sent]
    if step.left is not None and not step.lost:
        channel, at = step.left
        counted.append(f"taken {position.under_way[channel][at].kind}")
    return counted


def _bare(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: value for key, value in item.items() if key != _CHANGING}
    return item


def _number(item: Any) -> int | None:
    """The sequence number of a message: itself, or its field ``n``."""
    number = item.get("n") if isinstance(item, dict) else item
    return number if isinstance(number, int) else None


def _gone(old: tuple[Any, ...], new: tuple[Any, ...]) -> int | None:
    """Position of the one message that left a channel; None when all stayed."""
    if new[: len(old)] == old:
        return None
    for at in range(len(old)):
        rest = old[:at] + old[at + 1 :]
        if new[: len(rest)] == rest:
            return at
    raise ToolProblem("more than one message leaves a channel at once, which no script describes.")
