"""What conversations are drawn from."""

from __future__ import annotations

from bentpipe_fuzz.campaign.plan import Step, drawn, episode, step, weighted
from bentpipe_fuzz.stp.conversations import MODES
from hypothesis import strategies as st


def test_choice_that_is_there_several_times_is_drawn_as_often() -> None:
    often, seldom = st.just("often"), st.just("seldom") | st.just("never mind")
    found = drawn(weighted(often, often, often, seldom), 400, 1)
    assert 270 < found.count("often") < 330


def test_about_a_third_of_what_is_said_on_path_are_volleys() -> None:
    """As their weight among the situations asks for."""
    conversations = drawn(MODES["on-path"], 400, 1)
    volleys = sum(sum(taken.verb == "malformed" for taken in steps) > 10 for steps in conversations)
    assert 80 < volleys < 180


def test_episode_puts_steps_and_lists_of_them_together() -> None:
    given: list[Step] = drawn(episode(step("open"), st.just([]), step("settle")), 1, 1)[0]
    assert [taken.verb for taken in given] == ["open", "settle"]
