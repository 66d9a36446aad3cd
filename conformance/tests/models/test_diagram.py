from __future__ import annotations

from xml.etree import ElementTree

import pytest
from bentpipe_conformance.models import diagram as ladder
from bentpipe_conformance.models.messages import State

LAYOUT = {"left": "sender", "right": "receiver", "forward": ["link"], "back": ["acks"]}


def trace(*rows: tuple[str, str, str, str]) -> list[State]:
    return [State(a, {"link": link, "acks": acks, "x": x}) for a, link, acks, x in rows]


TRACE = trace(
    ("Initial predicate", "<<>>", "<<>>", "0"),
    ("Send", '<<[type |-> "SD", n |-> 1], 2>>', "<<>>", "1"),
    ("Lose", '<<[type |-> "SD", n |-> 1]>>', "<<>>", "1"),
    ("Receive", "<<>>", "<<7>>", "1"),
)


def test_messages_followed_from_sending_to_arrival_and_loss() -> None:
    drawn = ladder.build(TRACE, LAYOUT)
    first, second, answer = drawn.messages
    assert (first.text, first.left_at, first.arrived_at, first.lost) == ("SD n=1", 2, 4, False)
    assert (second.text, second.left_at, second.arrived_at, second.lost) == ("2", 2, 3, True)
    assert not answer.rightwards and answer.arrived_at is None


def test_aged_message_remains_the_same() -> None:
    aged = trace(("Init", '<<[type |-> "POLL", age |-> 0]>>', "<<>>", "0"),
                 ("Poll", '<<[type |-> "POLL", age |-> 1], [type |-> "POLL", age |-> 0]>>', "<<>>",
                  "0"))  # fmt: skip
    drawn = ladder.build(aged, LAYOUT)
    assert [(item.left_at, item.arrived_at) for item in drawn.messages] == [(1, None), (2, None)]


def test_text_names_actions_losses_and_changes() -> None:
    text = ladder.as_text(ladder.build(TRACE, LAYOUT, loop=3))
    assert "x: 0 -> 1" in text and "lost: 2" in text and "nothing ever happens again" in text
    assert "from step 2" in ladder.as_text(ladder.build(TRACE, LAYOUT, loop=1))


def test_changes_share_lines_and_others_are_left_out() -> None:
    names = ("first", "second", "third")
    rows = [State("Init", dict.fromkeys(names, "0")), State("Go", dict.fromkeys(names, "1" * 30))]
    below = ladder.as_text(ladder.build(rows, LAYOUT)).splitlines()[3:]
    assert [line.split(": ")[0].strip() for line in below] == ["first", "third"]
    assert "; second: 0 -> 1" in below[0] and max(map(len, below)) <= 102
    few = ladder.as_text(ladder.build(rows, LAYOUT, shown={"second"})).splitlines()[3:]
    assert [line.split(":")[0].strip() for line in few] == ["second"]


def test_of_a_ladder_that_is_too_long_the_first_steps_are_only_named() -> None:
    rows = [State(name, {"x": str(at)}) for at, name in enumerate(["Init", *["Go"] * 40, "End"])]
    drawn = ladder.build(rows, LAYOUT)
    whole = ladder.as_text(drawn).splitlines()
    assert ladder.as_text(drawn, 42).splitlines() == whole and len(whole) == 43
    head, names, *rest = ladder.as_text(drawn, 10).splitlines()
    assert (head, names.strip(), rest) == (whole[0], "start, Go x32", whole[-9:])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{0, 1}", "{0, 1, 2}", ["x: {0, 1} -> {0, 1, 2}"]),
        ("<<0, 0>>", "<<1, 0>>", ["x[1]: 0 -> 1"]),
        ("<<1>>", "<<1, 2, 3>>", ["x: + <<2,3>>"]),
        ("<<>>", "<<1>>", ["x: <<>> -> <<1>>"]),
        ('<<[st |-> "idle", n |-> 0, k |-> TRUE]>>', '<<[st |-> "open", n |-> 0, k |-> FALSE]>>',
         ["x[1].st: idle -> open", "x[1].k: TRUE -> FALSE"]),
        ("(0 :> 1 @@ 1 :> 0)", "(0 :> 2 @@ 1 :> 0)", ["x[0]: 1 -> 2"]),
    ],
)  # fmt: skip
def test_only_the_parts_that_change_are_told(old: str, new: str, says: list[str]) -> None:
    drawn = ladder.build([State("Init", {"x": old}), State("Go", {"x": new})], LAYOUT)
    assert list(drawn.steps[1].changes) == says


def test_svg_is_well_formed_and_escaped() -> None:
    svg = ladder.as_svg(ladder.build(TRACE, LAYOUT), "a < b")
    root = ElementTree.fromstring(svg)
    texts = [item.text for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b" in texts and "SD n=1" in texts and "x: 0 -> 1" in texts


def test_messages_in_a_set_are_drawn_from_their_sender() -> None:
    layout = {"left": "client", "right": "server", "network": "net"}
    begin = '[type |-> "BEGIN", from |-> "client", csn |-> 1]'
    answer = '[type |-> "BGAK", from |-> "server", csn |-> 1, peer |-> 1]'
    rows = [("Init", "{}"), ("Call", f"{{{begin}}}"), ("Open", f"{{{answer}, {begin}}}")]
    drawn = ladder.build([State(action, {"net": net}) for action, net in rows], layout)
    assert [(item.text, item.rightwards, item.left_at) for item in drawn.messages] == [
        ("BEGIN csn=1", True, 2), ("BGAK csn=1 peer=1", False, 3),
    ]  # fmt: skip
    text = ladder.as_text(drawn)
    assert "BEGIN csn=1" in text and "net" not in text
