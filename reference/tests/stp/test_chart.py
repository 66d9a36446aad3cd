"""The state diagram shows the changes of state of the specification's table."""

from __future__ import annotations

from bentpipe_reference.stp.chart import state_diagram, transitions
from bentpipe_reference.stp.states import State
from bentpipe_spec.document import state_table


def test_diagram_has_every_change_of_state_of_the_table() -> None:
    drawn = {(item.source, item.target, item.label) for item in transitions()}
    changes = {
        (row.state, row.next,
         f"{row.packet}: {row.when}" if row.when else row.packet)
        for row in state_table("stp") if row.next != row.state
    }  # fmt: skip
    assert len(changes) > 12 and changes <= drawn
    assert not {label for *_, label in drawn - changes if label.split(":")[0].isupper()}


def test_every_state_can_be_reached_and_left() -> None:
    titles = {state.title for state in State}
    assert {item.source for item in transitions()} == titles
    assert {item.target for item in transitions()} == titles
    assert all(title.split()[0] in state_diagram() for title in titles)
