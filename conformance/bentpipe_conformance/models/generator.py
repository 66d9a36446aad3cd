"""Scenarios for the suites: covering sets from state graphs, and the mutants' counterexamples."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.models import tlc
from bentpipe_conformance.models.cover import Cover, covering_paths, set_cover
from bentpipe_conformance.models.graph import Edge, Graph, read_graph
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.plan import Bounded, Plan, graph_configuration, plan_hash
from bentpipe_conformance.models.projection import Projection
from bentpipe_conformance.models.script import Journey, Message
from bentpipe_conformance.models.tool import Tool, ToolProblem
from bentpipe_conformance.models.verification import Checker, Limits, Result, configured

Data = dict[str, Any]


class Generator:
    """Makes the scenarios of models with one tool and one set of limits."""

    def __init__(self, tool: Tool, limits: Limits, say: Callable[[str], None]) -> None:
        """Prepare; ``say`` gets a line each time something is done."""
        self._tool, self._say = tool, say
        self._limits = replace(limits, directory=None, host=None)

    def generate(self, manifest: Manifest, plan: Plan) -> Data:
        """The scenarios of a model, as :mod:`bentpipe_spec.scenario` reads them.

        Raises:
            ToolProblem: the model checker failed, or a mutant is not caught.
        """
        named = self._named(manifest, plan)
        covers, graphs = self._covers(manifest, plan)
        return {
            "model": manifest.name,
            "model_sha256": plan_hash(manifest, plan, self._tool.root),
            "tool": self._tool.jar.stem,
            "graphs": graphs,
            "scenarios": [*named, *covers],
        }

    def _named(self, manifest: Manifest, plan: Plan) -> list[Data]:
        checker = Checker(self._tool, self._limits)
        results = checker.check_all(
            [(manifest, run) for run in plan.broken],
            lambda result: self._say(f"{manifest.name} {result.run.name}: {result.verdict}"),
            lambda _run, _far: None,
        )
        return [_counterexample(result, plan) for result in results]

    def _covers(self, manifest: Manifest, plan: Plan) -> tuple[list[Data], list[Data]]:
        found: dict[str, _Candidate] = {}
        graphs: list[Data] = []
        for number, item in enumerate(plan.graphs):
            states = self._graph(manifest, plan, item)
            candidates = _candidates(states, plan)
            for candidate in candidates:
                key = json.dumps([candidate.events, candidate.order], sort_keys=True)
                kept = found.setdefault(key, _Candidate(candidate.events, candidate.order))
                kept.taken.update((number, edge) for edge in candidate.edges)
            constants = dict(configured(manifest, item.run).constants)
            graphs.append(
                {"name": item.name, "constants": constants, "states": len(states.states),
                 "edges": len(states.edges)}
            )  # fmt: skip
            self._say(
                f"{manifest.name} {item.name}: {len(states.edges):,} edges, "
                f"{len(candidates)} scripts"
            )
        every = list(found.values())
        chosen = set_cover([frozenset(candidate.taken) for candidate in every])
        for number, record in enumerate(graphs):
            covered = {edge for at, _ in chosen for edge in every[at].taken if edge[0] == number}
            record["covered"] = len(covered)
        scenarios = []
        for order, (at, adds) in enumerate(chosen, start=1):
            graph = graphs[min(number for number, _ in every[at].taken)]
            constants = graph["constants"]
            scenarios.append(
                {"name": f"cover-{order:03}", "kind": "cover", "graph": graph["name"],
                 "edges": adds, "offered": int(constants[plan.offered]),
                 "window": int(constants[plan.window]), "events": every[at].events}
                | ({"order": list(every[at].order)} if every[at].order else {})
            )  # fmt: skip
        return scenarios, graphs

    def _graph(self, manifest: Manifest, plan: Plan, item: Bounded) -> Graph:
        with tempfile.TemporaryDirectory(prefix="bentpipe-graph-") as scratch:
            job = tlc.Job(
                module=manifest.folder / item.run.module,
                config=graph_configuration(manifest, item.run).text(),
                libraries=manifest.libraries(self._tool.root, item.run.module),
                directory=Path(scratch),
                memory_mb=self._limits.memory_mb,
                timeout=self._limits.timeout,
                dump=Path(scratch) / "graph.dot",
            )
            outcome = tlc.run(self._tool, job)
            graph = read_graph(Path(scratch) / "graph.dot", plan.variables)
        if len(graph.states) != outcome.distinct:
            raise ToolProblem(
                f"{manifest.name} {item.name}: the dump has {len(graph.states):,} states, but "
                f"{outcome.distinct:,} were found; run it again."
            )
        return graph


class _Candidate:
    """A script, with the edges of one graph and of all graphs that it takes."""

    def __init__(self, events: list[Data], order: Sequence[str] = ()) -> None:
        self.events = events
        self.order = tuple(order)
        self.edges: set[int] = set()
        self.taken: set[tuple[int, int]] = set()


def _candidates(graph: Graph, plan: Plan) -> list[_Candidate]:
    """Scripts whose executions together take every edge of a graph."""
    if not plan.layout.channels:
        return _orders(graph, plan)
    projection = Projection(graph, plan.layout)
    cover = Cover(graph.initial, graph.edges, len(graph.states))
    found: list[_Candidate] = []
    while (path := cover.next_path()) is not None:
        journey = projection.journey(path)
        candidate = _Candidate(_events(journey, plan))
        candidate.edges = projection.executions(journey.script())
        cover.mark(candidate.edges)
        found.append(candidate)
    return found


def _orders(graph: Graph, plan: Plan) -> list[_Candidate]:
    """As :func:`_candidates`, where a script fixes the order of all that the environment does."""
    found = []
    for path in covering_paths(graph.initial, graph.edges, len(graph.states)):
        past = plan.network.history(graph, path)
        candidate = _Candidate(past.fates(), past.order)
        candidate.edges = set(path)
        found.append(candidate)
    return found


def _counterexample(result: Result, plan: Plan) -> Data:
    manifest, run = result.manifest, result.run
    if result.outcome is None or result.violated != run.violates:
        raise ToolProblem(f"{manifest.name} {run.name} gives no counterexample: {result.why}")
    trace = result.outcome.trace
    edges = [Edge(at, at + 1, state.action) for at, state in enumerate(trace[1:])]
    graph = Graph([state.variables for state in trace], [0], edges)
    constants = dict(configured(manifest, run).constants)
    scenario = {
        "name": run.name,
        "kind": run.kind,
        "property": run.violates,
        "requirements": list(manifest.requirements.get(run.violates, ())),
        "about": run.about,
        "offered": int(constants[plan.offered]),
        "window": int(constants[plan.window]),
        "steps": [edge.action for edge in edges],
    }
    path = range(len(edges))
    if not plan.layout.channels:
        past = plan.network.history(graph, path)
        sent = [[m.text for m in past.sent if m.to_server is way] for way in (True, False)]
        return scenario | {"events": past.fates(), "order": list(past.order), "sent": sent}
    journey = Projection(graph, plan.layout).journey(path)
    sent = [
        [_label(message, journey, plan) for message in channel if message in journey.numbers]
        for channel in journey.sent
    ]
    return scenario | {"events": _events(journey, plan), "sent": sent}


def _label(message: Message, journey: Journey, plan: Plan) -> str:
    numbered = message.kind in plan.numbered
    return f"{message.kind} {journey.numbers[message]}" if numbered else message.kind


def _events(journey: Journey, plan: Plan) -> list[Data]:
    """A script as data: what becomes of which transmission, and when timers expire."""
    script = journey.script()
    delayed = journey.delayed()
    events: list[Data] = []
    for channel in journey.sent:
        for message in channel:
            event: Data = {"message": message.kind, "nth": message.nth}
            if message.kind in plan.numbered:
                event |= _number(message, channel, journey)
            if message in script.lost:
                events.append(event | {"fate": "lost"})
            elif message in delayed:
                events.append(event | {"fate": "delayed", "behind": list(delayed[message])})
            if message in script.doubled:
                events.append(event | {"fate": "doubled"})
    for (timer, basis), moments in zip(plan.layout.timers.items(), script.expiries, strict=True):
        events += [{"timer": timer, "after": moment, "of": basis} for moment in moments]
    return events


def _number(message: Message, channel: Sequence[Message], journey: Journey) -> Data:
    """The sequence number, and which transmission of that number it is."""
    number = journey.numbers[message]
    before = channel[: channel.index(message) + 1]
    alike = [m for m in before if m.kind == message.kind and journey.numbers.get(m) == number]
    return {"number": number, "transmission": len(alike)}


def format_scenarios(data: Data) -> str:
    """Scenarios as text: a line each, so that changes read well."""

    def lines(items: Sequence[Data]) -> str:
        return ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in items)

    parts = [f"  {json.dumps(key)}: {json.dumps(data[key])}" for key in data
             if key not in ("graphs", "scenarios")]  # fmt: skip
    parts += [f"  {json.dumps(key)}: [\n{lines(data[key])}\n  ]" for key in ("graphs", "scenarios")]
    return "{\n" + ",\n".join(parts) + "\n}\n"
