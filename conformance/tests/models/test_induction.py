"""Proofs by induction, for every window, modulus and number of packets; no bound is small here.

TLC shows that the models keep these invariants at small bounds (``NumbersAreNear`` of stp-data,
``NoSpuriousRetransmission`` of rwbp-recovery). Here Z3 shows that no step can break them at any
size: of all packets in flight one arbitrary packet of each kind is followed, for the steps treat
all alike. What is proved is this transcription of the rules, not the modules themselves; each proof
is also tried with a rule left out, and must then fail.

An arrival may move the receiver's variables to any value that the invariant permits, which is more
than the rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

z3 = pytest.importorskip("z3", reason="needs z3-solver (pip install bentpipe[proof])")

State = Mapping[str, Any]
Step = Callable[[State, State], Any]


def states(names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables before and after a step; names that begin with ``is_`` are truths."""

    def new(name: str) -> Any:
        return z3.Bool(name) if name.startswith("is_") else z3.Int(name)

    return {name: new(name) for name in names.split()}, {
        name: new(f"{name}_") for name in names.split()
    }


def is_theorem(claim: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(z3.Not(claim))
    found = solver.check()
    assert found != z3.unknown
    return bool(found == z3.unsat)


def broken_by(steps: Mapping[str, Step], invariant: Callable[[State], Any], names: str) -> set[str]:
    """The steps that do not keep an invariant."""
    s, t = states(names)
    return {
        name for name, step in steps.items()
        if not is_theorem(z3.Implies(z3.And(invariant(s), step(s, t)), invariant(t)))
    }  # fmt: skip


def others_same(s: State, t: State, *but: str) -> Any:
    return z3.And([t[name] == s[name] for name in s if name not in but])


# STP-DT-005, STP-DT-013: modulus and lifetime where packets are reordered and doubled

NUMBERS = "w m vt_a vt_s vt_ms vr_r vr_mr taken is_sd n is_poll p is_report r mr"


def numbers_are_near(s: State, least_modulus: int = 2) -> Any:
    """What every packet in flight shows is near enough to be read rightly."""
    far = s["vt_s"] - (s["m"] - s["w"])
    return z3.And(
        s["w"] > 0, s["m"] >= least_modulus * s["w"] + (1 if least_modulus == 1 else 0),
        s["vt_a"] >= 0, s["vt_a"] <= s["vr_r"], s["vr_r"] <= s["vt_s"], s["vt_s"] <= s["vt_ms"],
        s["vt_ms"] <= s["vr_mr"], s["vt_ms"] <= s["vt_a"] + s["w"],
        s["vr_mr"] <= s["taken"] + s["w"], s["taken"] <= s["vr_r"],
        z3.Implies(s["is_sd"], z3.And(far <= s["n"], s["n"] < s["vt_s"])),
        z3.Implies(s["is_poll"], z3.And(far < s["p"], s["p"] <= s["vt_s"])),
        z3.Implies(s["is_report"], z3.And(
            far <= s["r"], s["r"] <= s["vr_r"], s["r"] <= s["mr"], s["mr"] <= s["r"] + s["w"],
            s["mr"] <= s["vr_mr"],
        )),
    )  # fmt: skip


def lifetime_bound(s: State) -> Any:
    least = s["vt_s"] + 1 - (s["m"] - s["w"])
    return z3.And(z3.Implies(s["is_sd"], s["n"] > least), z3.Implies(s["is_poll"], s["p"] > least),
                  z3.Implies(s["is_report"], s["r"] > least))  # fmt: skip


def send_new(s: State, t: State, bound: Callable[[State], Any] = lifetime_bound) -> Any:
    becomes = z3.Or(z3.And(t["is_sd"], t["n"] == s["vt_s"]),
                    z3.And(t["is_sd"] == s["is_sd"], t["n"] == s["n"]))  # fmt: skip
    return z3.And(s["vt_s"] < s["vt_ms"], bound(s), t["vt_s"] == s["vt_s"] + 1, becomes,
                  others_same(s, t, "vt_s", "is_sd", "n"))  # fmt: skip


def retransmit(s: State, t: State) -> Any:
    return z3.And(t["is_sd"], s["vt_a"] <= t["n"], t["n"] < s["vt_s"],
                  others_same(s, t, "is_sd", "n"))  # fmt: skip


def poll(s: State, t: State) -> Any:
    return z3.And(t["is_poll"], t["p"] == s["vt_s"], others_same(s, t, "is_poll", "p"))


def arrive(s: State, t: State) -> Any:
    """An SD is taken, or the user reads; the tracked one may be it, or may be lost or doubled."""
    return z3.And(s["vr_r"] <= t["vr_r"], t["vr_r"] <= s["vt_s"], s["taken"] <= t["taken"],
                  t["taken"] <= t["vr_r"], others_same(s, t, "vr_r", "taken", "is_sd"),
                  z3.Implies(t["is_sd"], s["is_sd"]))  # fmt: skip


def report(s: State, t: State) -> Any:
    return z3.And(s["vr_mr"] <= t["vr_mr"], t["vr_mr"] <= s["taken"] + s["w"],
                  t["is_report"], t["r"] == s["vr_r"], t["mr"] == t["vr_mr"],
                  others_same(s, t, "vr_mr", "is_report", "r", "mr"))  # fmt: skip


def learn(s: State, t: State) -> Any:
    def larger(one: Any, other: Any) -> Any:
        return z3.If(one > other, one, other)

    return z3.And(s["is_report"], t["vt_a"] == larger(s["vt_a"], s["r"]),
                  t["vt_ms"] == larger(s["vt_ms"], s["mr"]),
                  others_same(s, t, "vt_a", "vt_ms"))  # fmt: skip


STEPS: dict[str, Step] = {
    "send_new": send_new, "retransmit": retransmit, "poll": poll, "arrive": arrive,
    "report": report, "learn": learn,
}  # fmt: skip


def test_no_step_takes_numbers_out_of_reach() -> None:
    assert broken_by(STEPS, numbers_are_near, NUMBERS) == set()


def test_a_report_that_is_read_gives_credit_from_its_own_numbers() -> None:
    s, _ = states(NUMBERS)
    claim = z3.Implies(z3.And(numbers_are_near(s), s["is_report"]), s["mr"] - s["r"] < s["m"])
    assert is_theorem(claim)


def decoded(d: Any, number: Any, base: Any, modulus: Any) -> Any:
    """The smallest number not below a base that looks the same: number, or a modulus away."""
    return z3.And(base <= d, d < base + modulus,
                  z3.Or(d == number, d >= number + modulus, d <= number - modulus))  # fmt: skip


def test_whatever_is_taken_is_read_rightly() -> None:
    s, _ = states(NUMBERS)
    d = z3.Int("d")
    near = numbers_are_near(s)
    sd = z3.And(s["is_sd"], decoded(d, s["n"], s["vr_r"], s["m"]), d < s["vr_mr"])
    asked = z3.And(s["is_poll"], decoded(d, s["p"], s["vr_r"], s["m"]), d <= s["vr_mr"])
    told = z3.And(s["is_report"], decoded(d, s["r"], s["vt_a"], s["m"]), d <= s["vt_s"])
    assert is_theorem(z3.Implies(z3.And(near, sd), d == s["n"]))
    assert is_theorem(z3.Implies(z3.And(near, asked), d == s["p"]))
    assert is_theorem(z3.Implies(z3.And(near, told), d == s["r"]))


def test_a_smaller_modulus_or_no_lifetime_breaks_the_proof() -> None:
    def near(s: State) -> Any:
        return numbers_are_near(s, least_modulus=1)

    assert broken_by(STEPS, near, NUMBERS) == {"retransmit", "report"}
    unbound = {"send_new": lambda s, t: send_new(s, t, lambda _: z3.BoolVal(True))}
    assert broken_by(unbound, numbers_are_near, NUMBERS) == {"send_new"}


# RWBP-EC-002: what the right edge shows as lost has left the link, and has not arrived

EDGE = "left next last first is_here is_there at seen is_ack is_edge is_told"
"""Of the transmissions, numbered in order, those below ``left`` have left the link and ``next`` is
the next. ``last`` is the last transmission of a packet p, ``first`` the first one of a packet e, in
the sender's list; p has arrived (``is_here``) or not, e (``is_there``) by its transmission ``at``.
An acknowledgment that was sent when ``seen`` transmissions had left (``is_ack``) reports e
(``is_edge``) and p (``is_told``) or not."""


def edge_is_sound(s: State) -> Any:
    return z3.And(
        s["left"] >= 0, s["left"] <= s["next"], s["last"] < s["next"], s["first"] < s["next"],
        z3.Implies(s["is_there"], z3.And(s["first"] <= s["at"], s["at"] < s["left"])),
        z3.Implies(s["is_ack"], s["seen"] <= s["left"]),
        z3.Implies(z3.And(s["is_ack"], s["is_edge"]), z3.And(s["is_there"], s["at"] < s["seen"])),
        # p's transmissions had all left when the acknowledgment was sent: it knows all of p.
        z3.Implies(z3.And(s["is_ack"], s["last"] < s["seen"]), s["is_told"] == s["is_here"]),
    )  # fmt: skip


def sent_p(s: State, t: State) -> Any:
    return z3.And(t["last"] == s["next"], t["next"] == s["next"] + 1,
                  others_same(s, t, "last", "next"))  # fmt: skip


def sent_other(s: State, t: State) -> Any:
    """Another packet, or e once more: its first transmission stays."""
    return z3.And(t["next"] == s["next"] + 1, others_same(s, t, "next"))


def left_p(s: State, t: State) -> Any:
    """A transmission of p leaves the link: it arrives, or is lost."""
    return z3.And(s["left"] < s["next"], s["left"] <= s["last"], t["left"] == s["left"] + 1,
                  z3.Implies(s["is_here"], t["is_here"]),
                  others_same(s, t, "left", "is_here"))  # fmt: skip


def left_e(s: State, t: State) -> Any:
    return z3.And(s["left"] < s["next"], s["first"] <= s["left"], t["left"] == s["left"] + 1,
                  z3.Or(z3.And(t["is_there"] == s["is_there"], t["at"] == s["at"]),
                        z3.And(z3.Not(s["is_there"]), t["is_there"], t["at"] == s["left"])),
                  others_same(s, t, "left", "is_there", "at"))  # fmt: skip


def left_other(s: State, t: State) -> Any:
    return z3.And(s["left"] < s["next"], t["left"] == s["left"] + 1, others_same(s, t, "left"))


def acknowledged(s: State, t: State) -> Any:
    """It reports all that has arrived: there are blocks enough."""
    return z3.And(t["is_ack"], t["seen"] == s["left"], t["is_edge"] == s["is_there"],
                  t["is_told"] == s["is_here"],
                  others_same(s, t, "is_ack", "seen", "is_edge", "is_told"))  # fmt: skip


EDGE_STEPS: dict[str, Step] = {
    "sent_p": sent_p, "sent_other": sent_other, "left_p": left_p, "left_e": left_e,
    "left_other": left_other, "acknowledged": acknowledged,
}  # fmt: skip


def inferred(s: State) -> Any:
    """The acknowledgment is taken: it shows e and not p, and p went before the first of e."""
    return z3.And(s["is_ack"], s["is_edge"], z3.Not(s["is_told"]), s["last"] < s["first"])


def test_no_step_takes_the_edge_before_what_has_left() -> None:
    assert broken_by(EDGE_STEPS, edge_is_sound, EDGE) == set()


def test_what_the_edge_shows_as_lost_is_neither_under_way_nor_there() -> None:
    s, _ = states(EDGE)
    lost = z3.And(s["last"] < s["left"], z3.Not(s["is_here"]))
    assert is_theorem(z3.Implies(z3.And(edge_is_sound(s), inferred(s)), lost))


def test_the_last_transmission_of_the_edge_shows_nothing() -> None:
    s, _ = states(EDGE)
    latest = z3.Int("latest")  # of e; the flaw of the paper's rule with a premature timer
    rule = z3.And(s["is_ack"], s["is_edge"], z3.Not(s["is_told"]), s["last"] < latest,
                  s["first"] <= latest, latest < s["next"])  # fmt: skip
    lost = z3.And(s["last"] < s["left"], z3.Not(s["is_here"]))
    assert not is_theorem(z3.Implies(z3.And(edge_is_sound(s), rule), lost))


def test_links_that_reorder_break_the_proof() -> None:
    def left_in_any_order(s: State, t: State) -> Any:
        arrives = z3.And(z3.Not(s["is_there"]), t["is_there"], t["at"] >= s["left"])
        return z3.And(t["at"] < s["next"], arrives, others_same(s, t, "is_there", "at"))

    assert broken_by({"left": left_in_any_order}, edge_is_sound, EDGE) == {"left"}
