"""Directives that print what the package knows, so that no page can disagree with it.

``requirement-matrix``, ``requirement-texts``
    the registry, with each requirement's checker, cases and mutants;
``implementation-table``, ``link-table``, ``statement-table SUITE``
    the bundled descriptions, the link profiles and a suite's conformance statement proforma;
``room-map``
    which room of the code imports which;
``state-diagram NAME``
    the states of a protocol's connections, from the reference's table of transitions;
``specification NAME``
    a specification in full;
``command-help NAME...``
    the help text of a command;
``model-bounds NAME CONSTANT...``
    the runs of a model that must hold, with these constants and their recorded figures;
``mutation-results FILE``
    what a run of ``bentpipe selftest SUITE --mutate --publish FILE`` has found;
``kill-matrix FILE``
    what a run of ``bentpipe model NAME --mutate --publish FOLDER`` has found;
``blind-rounds SUITE``
    the first runs of a suite's blind rounds;
``blind-variants SUITE``
    those of its rounds of permitted variants;
``experiment-results FILE``
    the table and the judgments of an experiment's ``results.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click
from bentpipe_conformance.cli.listing import iut_rows
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.checking import Checker, load_checkers
from bentpipe_conformance.engine.suite import load_suites, suite_named
from bentpipe_conformance.iut.proforma import load_proforma
from bentpipe_conformance.models.manifest import load_models, model_root
from bentpipe_conformance.models.mutation.campaign import parts_of
from bentpipe_conformance.models.verification import configured
from bentpipe_conformance.selftest import variants
from bentpipe_conformance.selftest.mutants import mutants_of
from bentpipe_conformance.selftest.rounds import load_record
from bentpipe_experiments.statistics import decimals
from bentpipe_reference.common.blind import VARIANTS, Variant, load_round, rounds_of
from bentpipe_reference.common.link.profile import Direction, load_profiles
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.stp.chart import state_diagram as stp_chart
from bentpipe_reference.tcp.chart import state_diagram as tcp_chart
from bentpipe_spec.document import specification
from bentpipe_spec.registry import Requirement, load_requirements
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from rooms import picture, read_rooms
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TITLES = {
    "SNR": "TCP loss recovery (SNR)",
    "STP": "Satellite Transport Protocol (STP)",
    "RWBP": "Receiver Window Backpressure Protocol (RWBP)",
}
CHARTS = {"tcp": tcp_chart, "stp": stp_chart}
"""What draws the states of a protocol's connections."""

GROUPS = {
    "SNR-ACK": "acknowledgments",
    "SNR-CA": "congestion avoidance",
    "SNR-FR": "fast retransmit",
    "SNR-LT": "limited transmit",
    "SNR-OPT": "options",
    "SNR-RCV": "receiver",
    "SNR-REC": "recovery",
    "SNR-RTO": "retransmission timeout",
    "SNR-SAK": "selective acknowledgment",
    "SNR-SS": "slow start",
    "SNR-TS": "timestamps",
    "SNR-WIN": "windows",
    "STP-PF": "packet format",
    "STP-CC": "connections",
    "STP-DT": "data transfer",
    "STP-PL": "polling",
    "STP-CG": "congestion and pacing",
    "STP-SEC": "robustness",
    "RWBP-NG": "negotiation",
    "RWBP-WF": "segments",
    "RWBP-WN": "windows",
    "RWBP-AK": "acknowledgments",
    "RWBP-EC": "error control",
    "RWBP-TM": "retransmission timer",
    "RWBP-FF": "order of packets",
    "RWBP-FC": "flow control",
    "RWBP-SC": "scheduling",
    "RWBP-LC": "link and gateway's credit",
    "RWBP-CX": "connections",
    "RWBP-SEC": "security",
}
"""Names of suites and groups, in the order of the page; what is not named here comes last."""


class Printed(SphinxDirective):
    """A directive whose content is reStructuredText that it writes itself."""

    def lines(self) -> Iterable[str]:
        """The source lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the lines where the directive stands."""
        source = StringList(list(self.lines()), source=self.get_source_info()[0])
        return self.parse_content_to_nodes(source)

    def stored(self) -> dict[str, Any]:
        """The JSON file that the argument names, on which the page then depends."""
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        with open(path, encoding="utf-8") as stream:
            found: dict[str, Any] = json.load(stream)
        return found

    def parse_content_to_nodes(self, source: StringList) -> list[nodes.Node]:
        """The nodes of the lines."""
        container = nodes.Element()
        self.state.nested_parse(source, self.content_offset, container, match_titles=True)
        return container.children


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "", widths: str = "auto"
) -> Iterable[str]:
    """A list table in a box that scrolls."""
    yield ".. container:: wide-table"
    yield ""
    yield "   .. list-table::"
    yield "      :header-rows: 1"
    yield f"      :widths: {widths}"
    if kind:
        yield f"      :class: {kind}"
    yield ""
    for row in (header, *rows):
        for i, cell in enumerate(row):
            mark = "* -" if i == 0 else "  -"
            first, *more = cell.split("\n") if cell else [""]
            yield f"      {mark} {first}".rstrip()
            yield from (f"          {line}".rstrip() for line in more)
    yield ""


def _by_group() -> dict[str, list[Requirement]]:
    """Requirements by group, those of the first suite first."""
    found: dict[str, list[Requirement]] = {}
    for item in load_requirements().values():
        found.setdefault(item.id.rpartition("-")[0], []).append(item)
    suites = list(TITLES)

    def place(group: str) -> tuple[int, str]:
        suite = group.split("-")[0]
        return suites.index(suite) if suite in suites else len(suites), group

    return {group: found[group] for group in sorted(found, key=place)}


def _heading(group: str) -> str:
    suite = group.split("-")[0]
    return f"{TITLES.get(suite, suite)}: {GROUPS.get(group, group)}"


def _cases_of(requirement: str) -> list[str]:
    return [item.id for item in _cases() if requirement in item.requirements]


def _cases() -> list[Case]:
    return [item for suite in load_suites() for item in load_cases(suite).values()]


def _checkers() -> dict[str, Checker]:
    return {
        name: found
        for item in load_suites().values()
        for name, found in load_checkers(item).items()
    }


def _anchor(requirement: str) -> str:
    return f"requirement-{requirement.lower()}"


def _bullets(names: Sequence[str]) -> str:
    return "\n".join(f"* ``{name}``" for name in names) if names else "—"


class RequirementMatrix(Printed):
    """Requirement x level x checker x cases x mutants, a table per group."""

    def lines(self) -> Iterable[str]:
        """A table per group, after the totals."""
        registry, checkers = load_requirements(), _checkers()
        wire = [item for item in registry.values() if item.testability == "wire"]
        yield (
            f"{len(registry)} requirements, {len(wire)} of them judged on packets; "
            f"{len(checkers)} checkers, {len(_cases())} cases, {len(load_mutants())} mutants."
        )
        yield ""
        for group, items in _by_group().items():
            yield f".. rubric:: {_heading(group)}"
            yield ""
            if any(item.testability == "wire" for item in items):
                header = ("requirement", "level", "profiles", "checker", "cases", "mutants")
                rows = (self._row(item) for item in items)
                yield from _table(header, rows, "matrix", "20 8 8 20 24 20")
            else:
                header = ("requirement", "level", "shown by", "source")
                rows = (self._short_row(item) for item in items)
                yield from _table(header, rows, "matrix", "45 9 11 35")

    @staticmethod
    def _short_row(item: Requirement) -> tuple[str, ...]:
        name = f":ref:`{item.id} <{_anchor(item.id)}>` {_escaped(item.title)}"
        return name, item.level, item.testability, _escaped("; ".join(item.source))

    @staticmethod
    def _row(item: Requirement) -> tuple[str, ...]:
        checker = _checkers().get(item.id)
        module = checker.__module__.rpartition(".")[2] if checker else ""
        return (
            f":ref:`{item.id} <{_anchor(item.id)}>` {_escaped(item.title)}",
            item.level,
            ", ".join(item.profiles),
            f"``{module}.{getattr(checker, '__name__', '')}``" if checker else item.testability,
            _bullets([name.split("/", 1)[1] for name in _cases_of(item.id)]),
            _bullets(mutants_of(item.id)),
        )


class RequirementTexts(Printed):
    """Every requirement in full."""

    def lines(self) -> Iterable[str]:
        """A block per requirement."""
        for group, items in _by_group().items():
            yield f".. rubric:: {_heading(group)}"
            yield ""
            for item in items:
                yield from self._block(item)

    @staticmethod
    def _block(item: Requirement) -> Iterable[str]:
        yield ".. container:: requirement"
        yield ""
        yield f"   .. _{_anchor(item.id)}:"
        yield ""
        yield f"   **{item.id}** {_escaped(item.title)} ({item.level}; {', '.join(item.profiles)})"
        yield ""
        yield f"   {_escaped(item.text)}"
        yield ""
        if item.difference:
            yield f"   *Paper and RFC:* {_escaped(item.difference)}"
            yield ""
        for profile, values in item.alternatives.items():
            named = ", ".join(f"``{name} = {value!r}``" for name, value in values.items())
            yield f"   *In* ``{profile}``: {named}"
            yield ""
        if item.condition:
            yield f"   *Only if the conformance statement claims* ``{item.condition}``."
            yield ""
        yield f"   *Source:* {_escaped('; '.join(item.source))}"
        yield ""


class ImplementationTable(Printed):
    """The bundled implementations under test."""

    def lines(self) -> Iterable[str]:
        """A row per description."""
        rows = [
            (f"``{row['id']}``", _escaped(row["name"]), f"``{row['attach']}``", _claims(row["ics"]))
            for row in iut_rows()
        ]
        yield from _table(("ID", "implementation", "attached by", "claims"), rows)


class LinkTable(Printed):
    """The bundled link profiles."""

    def lines(self) -> Iterable[str]:
        """A row per profile."""
        rows = [
            (f"``{item.id}``", _escaped(item.title), _direction(item.forward),
             _direction(item.return_), f"{1000 * item.round_trip_s:g} ms", _escaped(item.source))
            for item in load_profiles().values()
        ]  # fmt: skip
        yield from _table(("ID", "link", "forward", "return", "round trip", "source"), rows)


class StatementTable(Printed):
    """The proforma of a suite's conformance statement."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """A row per item."""
        rows = [
            (f"``{name}``", f"{item.kind}{_choices(item.choices)}", f"``{_toml(item.default)}``",
             _escaped(item.question))
            for name, item in load_proforma(suite_named(self.arguments[0])).items()
        ]  # fmt: skip
        yield from _table(("item", "type", "default", "question"), rows)


class ModelBounds(Printed):
    """The runs of a model in which all properties hold."""

    required_arguments = 2
    final_argument_whitespace = True

    def lines(self) -> Iterable[str]:
        """A row per run whose figures are recorded."""
        model = load_models(model_root())[self.arguments[0]]
        names = self.arguments[1].split()
        rows = []
        for run in model.runs:
            drawn = run.simulate
            if run.kind in ("check", "liveness") and (run.distinct is not None or drawn):
                constants = configured(model, run).constants
                bounds = (constants[name].lower() for name in names)
                size = f"{run.distinct:,}" if not drawn else (
                    f"{drawn['behaviours']:,} behaviours of {drawn['depth']} states at most"
                )  # fmt: skip
                figures = (size, f"{run.seconds:.0f}" if run.seconds else "", "holds")
                rows.append((f"``{run.name}``", *bounds, *figures))
        yield from _table(("run", *names, "distinct states", "seconds", "verdict"), rows)


class Specification(Printed):
    """A specification, every rule in its place."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """The lines of the text."""
        return specification(self.arguments[0]).splitlines()


class CommandHelp(Directive):
    """The help text of a command, as the command prints it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """A literal block."""
        words = self.arguments[0].split()
        context = click.Context(bentpipe, info_name="bentpipe", help_option_names=["-h", "--help"])
        context.terminal_width = 96
        command: click.Command = bentpipe
        for word in words:
            assert isinstance(command, click.Group)
            found = command.get_command(context, word)
            assert found is not None, f"there is no command {' '.join(words)}"
            command = found
            context = click.Context(command, info_name=word, parent=context)
            context.terminal_width = 96
        text = command.get_help(context)
        return [nodes.literal_block(text, text, language="text")]


class MutationResults(Printed):
    """The sums, survivors and explanations of a stored run over machine-made mutants."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """A sentence, a table by module, then a table for each class of survivors."""
        result = self.stored()
        unfinished = "" if result["complete"] else " The run is not complete."
        yield (
            f"{result['mutants']} mutants: {result['killed']} killed, {result['explained']} "
            f"explained, {result['survived']} survived. Killed of what is not explained: "
            f"**{result['score']:.1%}**.{unfinished}"
        )
        if again := result.get("rerun"):
            yield (
                f"In the whole run {again['survivors']} survived, and {again['score']:.1%} were "
                f"killed. Of these, run again later, {again['killed']} are killed and "
                f"{again['explained']} explained; {again['survived']} survive, and of "
                f"{again['changed']}, which still count as survivors, the line has changed. What "
                "the whole run killed has not been run again."
            )
        yield ""
        counts = ("mutants", "killed", "explained")
        yield from _table(
            ("module", *counts, "survived"),
            [
                (f"``{row['module']}``", *(str(row[name]) for name in counts),
                 str(row["mutants"] - row["killed"] - row["explained"]))
                for row in result["modules"]
            ],
        )  # fmt: skip
        rows: dict[str, list[tuple[str, ...]]] = {}
        for row in result["survivors"]:
            kind = f"Survived: {row['kind']}"
            rows.setdefault(kind, []).append((_mutant(row), _change(row)))
        for row in result["explanations"]:
            why = _escaped(" ".join(filter(None, (row["reason"], row.get("clause", "")))))
            rows.setdefault(f"Explained: {row['class']}", []).append(
                (_mutant(row), f"{_change(row)}\n\n{why}")
            )
        for kind, cells in sorted(rows.items()):
            yield f".. rubric:: {kind}"
            yield ""
            yield from _table(("mutant", "change"), cells, "matrix", "40 60")


class KillMatrix(Printed):
    """What each property of a model notices of small changes, by configuration."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """A sentence, the matrix, then survivors and explanations."""
        result = self.stored()
        tried = result["mutants"] + result["stillborn"]
        drawn = f"All {tried} small changes were tried"
        if tried < result["all"]:
            seed = f", drawn with seed {result['seed']}" if result["seed"] else ""
            drawn = f"A sample of {tried} of {result['all']} small changes{seed} was tried"
        if result["partial"]:
            drawn = (
                f"Of a sample of {result['sample']} of {result['all']} small changes{seed} {tried} "
                "were tried before the time was up"
            )
        yield (
            f"{drawn} on {result['measured']}; {result['stillborn']} cannot be evaluated. Of the "
            f"other {result['mutants']}, {result['killed']} were killed, {result['explained']} are "
            f"explained, {result['survived']} survived. Killed of what is not explained: "
            f"**{result['score']:.1%}**. {self.changed(result)}"
        )
        yield ""
        yield "The table counts a mutant where it was noticed first, in the smallest run that did."
        yield ""
        runs = list(dict.fromkeys(name for row in result["matrix"] for name in row["runs"]))
        yield from _table(
            ("noticed by", "mutants", *runs),
            [
                (f"``{row['property']}``" + ("" if row["how"] == "violated" else " (not reached)"),
                 str(row["killed"]), *(str(row["runs"].get(name, "")) for name in runs))
                for row in result["matrix"]
            ],
            "matrix",
        )  # fmt: skip
        rows: dict[str, list[tuple[str, ...]]] = {}
        for row in result["survivors"]:
            rows.setdefault(f"Survived: {row['kind']}", []).append((_place(row), _change(row)))
        for row in result["explanations"]:
            cell = f"{_change(row)}\n\n{_escaped(row['reason'])}"
            rows.setdefault(f"Explained: {row['class']}", []).append((_place(row), cell))
        for kind, cells in sorted(rows.items()):
            yield f".. rubric:: {kind}"
            yield ""
            yield from _table(("mutant", "change"), cells, "matrix", "30 70")

    @staticmethod
    def changed(result: dict[str, Any]) -> str:
        """What is no longer as it was when the changes were tried."""
        now = parts_of(load_models(model_root())[result["model"]])
        parts = [name for name in now if now[name] != result["of"][name]]
        named = {"specification": "the specification", "checks": "properties, bounds or runs"}
        if not parts:
            return "Nothing of the model has changed since."
        return f"Since then {' and '.join(named[name] for name in parts)} have changed."


def _place(row: dict[str, Any]) -> str:
    _, definition, operator, _ = row["id"].split(":")
    return f"``{definition}``, {operator}"


def _mutant(row: dict[str, Any]) -> str:
    module, function, operator, _ = row["id"].split(":")
    return f"``{module}``\n``{function}``, {operator}"


def _change(row: dict[str, Any]) -> str:
    return f"``{row['before']}``\n\n``{row['after']}``"


class BlindRounds(Printed):
    """The blind rounds of a suite: a table of first runs, then one of the faults of each round."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """The tables, or that there is none yet."""
        protocol = suite_named(self.arguments[0]).folder
        records = {number: load_record(protocol, number) for number in rounds_of(protocol)}
        held = {number: record for number, record in records.items() if record}
        if not held:
            yield "No round has been held yet."
            return
        rows = []
        for number, record in held.items():
            found = [item for item in record["fault"].values() if _counts(item)]
            caught = [item for item in found if item["caught"]]
            right = sum(item["right"] for item in caught)
            rows.append((
                f"{number}", record["date"], f"{len(record['fault'])}", f"{len(found)}",
                _share(len(caught), len(found)), _share(right, len(caught)),
            ))  # fmt: skip
        header = ("round", "date", "faults", "valid", "caught", "of these named rightly first")
        yield from _table(header, rows)
        for number, record in held.items():
            yield f".. rubric:: Round {number}"
            yield ""
            faults = load_round(protocol, number)
            cells = [self._row(faults[name], item) for name, item in record["fault"].items()]
            header = ("fault", "clause", "first run", "named first")
            yield from _table(header, cells, "matrix", "45 20 15 20")

    @staticmethod
    def _row(fault: Variant, item: dict[str, Any]) -> tuple[str, ...]:
        verdict = "caught" if item["caught"] else "**missed**"
        if not _counts(item):
            verdict = f"{item['valid']}: {_escaped(item['reason'])}"
        named = f"``{item['named']}``" if item["named"] else ""
        return f"``{fault.id}``\n{_escaped(fault.title)}", _escaped(fault.clause), verdict, named


class BlindVariants(Printed):
    """The rounds of a suite's permitted variants: sums of first runs, then each accusation."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """The tables; nothing before the first round."""
        suite = suite_named(self.arguments[0])
        held = {
            number: record
            for number in rounds_of(suite.folder, VARIANTS)
            if (record := variants.load_record(suite.folder, number))
        }
        for number, record in held.items():
            first = variants.first_run(record)
            yield f".. rubric:: {suite.title}: round {number} of variants, {first['date']}"
            yield ""
            reviews = ", ".join(f"{n} {name}" for name, n in first["requirements"].items() if n)
            yield (
                f"{first['variants']} variants count; {first['accused']} were accused at the first "
                f"run, {first['wrongly']} of them wrongly, {first['rightly']} rightly."
                + (f" Requirements that accused: {reviews}." if reviews else "")
            )
            yield ""
            known = load_round(suite.folder, number, VARIANTS)
            rows = [
                row
                for name, item in record["variant"].items()
                for row in self._rows(known[name], item)
            ]
            header = ("variant", "clause", "accused of", "review")
            yield from _table(header, rows, "matrix", "40 20 15 25") if rows else ()

    @staticmethod
    def _rows(variant: Variant, item: dict[str, Any]) -> Iterable[tuple[str, ...]]:
        told = f"``{variant.id}``\n{_escaped(variant.title)}", _escaped(variant.clause)
        if item["error"] or not item["active"]:
            yield *told, "", "does not count: it " + ("breaks down" if item["error"] else "is idle")
        for name, review in item.get("accused", {}).items():
            yield *told, f"``{name}``", f"{review['review']}\n{_escaped(review['reason'])}"
            told = "", ""


def _counts(item: dict[str, Any]) -> bool:
    return str(item.get("valid", "valid")) == "valid"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else "—"


class ExperimentResults(Printed):
    """The table and judgments of a results.json beside the page."""

    required_arguments = 1

    def lines(self) -> Iterable[str]:
        """The table of means, then a paragraph per judgment."""
        result = self.stored()
        points = result["points"]
        series = [item["id"] for item in result["series"]]
        found = {(point["series"], point["x"]): point for point in points}
        xs = sorted({point["x"] for point in points})
        labels = [item["label"] for item in result["series"]]
        for note, y in ((None, result["y"]), *((p["note"], p["y"]) for p in _panels(result))):
            here = {key: point["panels"][note] if note else point for key, point in found.items()}
            digits = decimals(point["mean"] for point in here.values())
            rows = [(f"{x:g}", *(_mean(here[name, x], digits) for name in series)) for x in xs]
            yield f"{_capital(y)}, mean and 95 % confidence interval, seed {result['seed']}:"
            yield ""
            yield from _table((result["x"], *labels), rows)
        for item in result["judgments"]:
            word = {True: "holds", False: "does not hold", None: "open"}[item["holds"]]
            yield f"* {_escaped(_capital(item['claim']))}: **{word}**."
            yield f"  {_escaped(_capital(item['sentence']))}."
        yield ""


class ExperimentSettings(ExperimentResults):
    """What was set, and why."""

    def lines(self) -> Iterable[str]:
        """A definition per setting."""
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        with open(path, encoding="utf-8") as stream:
            result = json.load(stream)
        for name, text in result["settings"].items():
            yield name
            yield f"   {_escaped(text)}."
            yield ""


class Picture(Directive):
    """A directive whose content is an SVG that scrolls where it is wider than the page."""

    def svg(self) -> str:
        """The picture."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The picture as a raw node."""
        return [nodes.raw("", f'<div class="wide-table">{self.svg()}</div>', format="html")]


class RoomMap(Picture):
    """The rooms of the code and who imports whom."""

    def svg(self) -> str:
        """Drawn from the code."""
        return picture(read_rooms())


class StateDiagram(Picture):
    """The states of a protocol's connections."""

    required_arguments = 1

    def svg(self) -> str:
        """Drawn from the table of transitions."""
        return CHARTS[self.arguments[0]]()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _panels(result: dict[str, Any]) -> list[dict[str, str]]:
    return result.get("panels") or []


def _mean(point: dict[str, Any], digits: int) -> str:
    return f"{point['mean']:.{digits}f} ± {point['ci95'][1] - point['mean']:.{digits}f}"


def _claims(ics: dict[str, Any]) -> str:
    claimed = [f"``{name}``" for name, value in ics.items() if value is True]
    said = [f"``{name} = {value}``" for name, value in ics.items() if not isinstance(value, bool)]
    return ", ".join((*claimed, *said))


def _direction(way: Direction) -> str:
    rate = "no limit"
    if way.rate_bit_s is not None:
        large = way.rate_bit_s >= 1e6
        rate = f"{way.rate_bit_s / (1e6 if large else 1e3):g} {'M' if large else 'k'}b/s"
    return f"{rate}, {1000 * way.delay_s:g} ms, queue {way.queue_packets}"


def _choices(choices: Sequence[str]) -> str:
    return f": {', '.join(choices)}" if choices else ""


def _toml(value: object) -> str:
    return json.dumps(value)


def _escaped(text: str) -> str:
    """Text without reStructuredText markup."""
    return "".join(f"\\{letter}" if letter in "*`|_\\" else letter for letter in text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("requirement-matrix", RequirementMatrix)
    app.add_directive("requirement-texts", RequirementTexts)
    app.add_directive("implementation-table", ImplementationTable)
    app.add_directive("link-table", LinkTable)
    app.add_directive("statement-table", StatementTable)
    app.add_directive("room-map", RoomMap)
    app.add_directive("state-diagram", StateDiagram)
    app.add_directive("model-bounds", ModelBounds)
    app.add_directive("specification", Specification)
    app.add_directive("command-help", CommandHelp)
    app.add_directive("mutation-results", MutationResults)
    app.add_directive("kill-matrix", KillMatrix)
    app.add_directive("blind-rounds", BlindRounds)
    app.add_directive("blind-variants", BlindVariants)
    app.add_directive("experiment-results", ExperimentResults)
    app.add_directive("experiment-settings", ExperimentSettings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
