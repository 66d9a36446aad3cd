"""The state diagrams: every change of state is an arrow, and nothing else is."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from bentpipe_reference.common.diagram import Transition, diagram

SVG = "{http://www.w3.org/2000/svg}"
LAMP = (
    Transition("off", "on", "switch"),
    Transition("on", "off", "switch"),
    Transition("on", "off", "power < 5 W & dark"),
    Transition("on", "off", "switch"),
    Transition("on", "on", "flicker"),
)


def texts(svg: str) -> list[str]:
    return [item.text or "" for item in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def arrows(svg: str) -> list[tuple[float, float]]:
    """From where to where each arrow goes, in pixels."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}path")
    lines = [item.attrib["d"] for item in found if item.attrib["class"] == "edge"]
    return [(float(line[1:].split()[0]), float(line.partition("H")[2])) for line in lines]


def test_transitions_share_an_arrow_for_each_way() -> None:
    svg = diagram("a lamp", ("off", "on"), LAMP)
    there, back = arrows(svg)
    assert there[0] < there[1] and back[0] > back[1]
    labels = [text for text in texts(svg) if text not in ("off", "on")]
    assert labels == ["switch", "switch", "power < 5 W & dark"]


def test_every_state_has_a_box_at_both_ends() -> None:
    svg = diagram("a lamp", ("off", "on", "out of order"), LAMP)
    assert sorted(text for text in texts(svg) if text in ("off", "on", "out of order")) == [
        "off", "off", "on", "on", "out of order", "out of order",
    ]  # fmt: skip


def test_order_of_the_states_is_that_of_the_columns() -> None:
    (there, _), (back, _) = (arrows(diagram("", order, LAMP)) for order in
                             (("off", "on"), ("on", "off")))  # fmt: skip
    assert there[0] < there[1] and back[0] < back[1]


def test_label_wider_than_the_picture_begins_inside_it() -> None:
    svg = diagram("", ("a", "b"), [Transition("a", "b", "a rather long label, " * 2)])
    (label,) = (item for item in ElementTree.fromstring(svg).iter(f"{SVG}text")
                if len(item.text or "") > 1)  # fmt: skip
    assert float(label.attrib["x"]) > 0


def test_transition_to_an_unknown_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="broken"):
        diagram("a lamp", ("off", "on"), [*LAMP, Transition("on", "broken", "fall")])
