"""The requirement that names a fault stands first."""

from __future__ import annotations

from bentpipe_conformance.cli.certify import in_order
from bentpipe_conformance.engine.attribution import Attribution, CaseFindings, attribute, ranks
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict


def case(name: str, *failing: tuple[str, int], targets: tuple[str, ...] = ()) -> CaseFindings:
    findings = [Finding(item, Verdict.FAIL, (packet,), "wrong") for item, packet in failing]
    return CaseFindings(name, targets, [*findings, Finding("X-9", Verdict.PASS, (1,), "right")])


def test_nothing_fails_nothing_is_named() -> None:
    assert attribute([case("a")]) == []


def test_first_packet_is_the_cause_and_later_ones_its_consequences() -> None:
    assert attribute([case("a", ("LATE", 9), ("EARLY", 3))]) == [
        Attribution("EARLY", ("a",), ("LATE",))
    ]


def test_same_packet_is_attributed_to_what_the_case_is_about() -> None:
    (found,) = attribute([case("a", ("X", 3), ("Y", 3), targets=("Y",))])
    assert found.requirement == "Y"


def test_requirement_that_is_the_cause_most_often_names_the_fault() -> None:
    cases = [case("a", ("X", 3), ("Y", 5)), case("b", ("Y", 2)), case("c", ("Y", 4), ("Z", 6))]
    assert attribute(cases) == [
        Attribution("Y", ("b", "c"), ("Z",)),
        Attribution("X", ("a",), ()),
    ]


def test_requirement_yields_to_what_it_rests_on_where_that_fails_too() -> None:
    cases = [case("a", ("X", 3)), case("b", ("X", 2)), case("c", ("Y", 4))]
    assert attribute(cases)[0] == Attribution("X", ("a", "b"), ())
    assert attribute(cases, {"X": ("Y",)}) == [Attribution("Y", ("a", "b", "c"), ("X",))]
    assert attribute(cases, {"Y": ("Z",)})[0].requirement == "X"


def test_requirement_that_fails_far_more_often_does_not_yield() -> None:
    cases = [*(case(str(number), ("X", 3)) for number in range(5)), case("c", ("Y", 4))]
    assert attribute(cases, {"X": ("Y",)})[0] == Attribution("X", ("0", "1", "2", "3", "4"), ())


def test_requirement_that_fails_alone_in_most_of_its_cases_is_no_cause_of_others() -> None:
    """A box that calls from another port does so in each case."""
    alone = [case(str(number), ("PORT", 3)) for number in range(5)]
    both = [case(name, ("PORT", 3), ("RESET", 9), ("FIN", 10)) for name in "abcd"]
    named = attribute([*alone, *both])
    assert named[0] == Attribution("PORT", ("0", "1", "2", "3", "4"), ())
    assert named[1] == Attribution("RESET", ("a", "b", "c", "d"), ("FIN",))
    (found,) = attribute([*alone[:3], *both])[:1]
    assert found.requirement == "PORT" and found.consequences == ("RESET", "FIN")


def test_finding_without_a_packet_names_only_where_no_other_does() -> None:
    died = Finding("T", Verdict.FAIL, (), "the implementation ended")
    found = Finding("X", Verdict.FAIL, (7,), "wrong")
    assert attribute([CaseFindings("a", ("T",), [died, found])])[0].requirement == "X"
    assert attribute([CaseFindings("a", ("T",), [died])])[0].requirement == "T"


def test_ranks_follow_the_stored_attribution() -> None:
    stored = [
        {"requirement": "A", "consequences": ["B", "C"]},
        {"requirement": "D", "consequences": ["B"]},
    ]
    assert ranks(stored) == {"A": (0, 0), "B": (0, 1), "C": (0, 2), "D": (1, 0)}


def test_failures_are_printed_cause_first_after_what_was_not_supported() -> None:
    verdicts = {"A": "fail", "B": "fail", "C": "pass", "D": "inconclusive", "E": "unsupported"}
    result = {
        "requirements": [{"id": name, "verdict": verdict} for name, verdict in verdicts.items()],
        "attribution": [{"requirement": "B", "consequences": ["A"]}],
    }
    told = [(row["id"], in_the_wake) for row, in_the_wake in in_order(result)]
    assert told == [("E", False), ("D", False), ("B", False), ("A", True)]
