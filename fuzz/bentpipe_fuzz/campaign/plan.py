"""Which conversations a campaign tries: drawn by Hypothesis, or made of those worth keeping."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

from bentpipe_fuzz.campaign.script import WAYS, Impairment, Script, Step
from bentpipe_fuzz.campaign.sharing import Shared

MOST_STEPS = 12
MOST_SITUATIONS = 5
BATCH = 40
"""Conversations that are drawn at once."""

BRED_EVERY = 4
"""After so many new conversations one is made of those kept. More of them reach less: 600 of which
half were such met 179 requirements of TCP and 189 pairs of state and packet, all new ones 194 and
217."""

HABITUAL_EVERY = 10
"""Of so many conversations one is with a tester who does something all the time."""

Item = TypeVar("Item")
Steps = st.SearchStrategy[Sequence[Step]]


def step(verb: str, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """A step whose arguments are drawn."""
    return st.fixed_dictionaries(dict(given)).map(lambda drawn: Step(verb, drawn))


def episode(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Step]]:
    """Steps, lists of steps and episodes in this order: what leads into a situation and probes it.

    A part may draw None, which is nothing.
    """
    return st.tuples(*parts).map(_flat)


def repeated(part: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Step]]:
    """One to ``most`` of a part."""
    return st.lists(part, min_size=1, max_size=most).map(_flat)


def _flat(parts: Sequence[Any]) -> list[Step]:
    found: list[Step] = []
    for part in parts:
        if isinstance(part, Step):
            found.append(part)
        elif part is not None:
            found += part
    return found


def weighted(*choices: st.SearchStrategy[Item]) -> st.SearchStrategy[Item]:
    """One of these, as often as it is among them.

    ``one_of`` asks a choice that is among them several times once only, and takes a choice of
    choices apart.
    """
    return st.sampled_from(range(len(choices))).flatmap(choices.__getitem__)


def conversation(
    opening: st.SearchStrategy[Step], *kinds: st.SearchStrategy[Step],
    episodes: Sequence[st.SearchStrategy[list[Step]]] = (),
    situations: Sequence[st.SearchStrategy[list[Step]]] = (),
    habits: st.SearchStrategy[Step] | None = None,
) -> Steps:  # fmt: skip
    """An opening, and up to :data:`MOST_STEPS` steps of these kinds; a second opening is rare.

    With ``episodes``, as many are short: an opening, a few steps, and an episode. Three of five are
    of ``situations``, which open connections of their own, up to :data:`MOST_SITUATIONS` in a row;
    a third of these are disturbed by a step of the last kind. One of :data:`HABITUAL_EVERY` begins
    with one of ``habits``, which lasts.
    """
    following = st.lists(st.one_of(*kinds), min_size=1, max_size=MOST_STEPS)
    any_steps = st.builds(
        lambda first, rest, again, more: [first, *rest, *([again, *more] if again else [])],
        opening, following, weighted(st.none(), st.none(), st.none(), opening),
        st.lists(st.one_of(*kinds), max_size=3),
    )  # fmt: skip
    ways: list[Steps] = [any_steps]
    if episodes:
        few = st.lists(kinds[0], max_size=2)
        ways.append(episode(opening, few, weighted(*episodes), few))
    if situations:
        row = repeated(weighted(*situations), MOST_SITUATIONS)
        ways += [row, row, _disturbed(row, kinds[-1])]
    there = weighted(*ways)
    if habits is None:
        return there
    habitual: Steps = episode(habits, there)
    return weighted(*(HABITUAL_EVERY - 1) * (there,), habitual)


def _disturbed(steps: st.SearchStrategy[list[Step]], amid: st.SearchStrategy[Step]) -> Steps:
    """Steps with one or two others in some place behind the first."""
    return st.builds(
        lambda taken, place, more: [*taken[: 1 + place], *more, *taken[1 + place :]],
        steps, st.integers(0, 5) | st.integers(0, 15), st.lists(amid, min_size=1, max_size=2),
    )  # fmt: skip


_LATE = st.sampled_from([0.001, 0.05, 0.3, 0.7, 1.5])
_WAY = st.sampled_from(WAYS)
_PLACE = st.integers(1, 12) | st.integers(1, 60)
_SPAN = st.sampled_from([1, 1, 1, 1, 2, 3, 10])
_TIME = st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.5, 2.0, 4.0, 10.0])

impairments: st.SearchStrategy[Impairment] = st.one_of(
    st.builds(Impairment, _WAY, st.just("lose"), st.just("packet"), _PLACE, _SPAN),
    st.builds(Impairment, _WAY, st.just("lose"), st.just("packet"), _PLACE),
    st.builds(Impairment, _WAY, st.just("delay"), st.just("packet"), _PLACE, _SPAN, _LATE),
    st.builds(Impairment, _WAY, st.just("copy"), st.just("packet"), _PLACE, _SPAN, _LATE),
    st.builds(Impairment, _WAY, st.just("flip"), st.just("packet"), _PLACE, st.just(1),
              st.integers(0, 400)),
    st.builds(Impairment, _WAY, st.just("lose"), st.just("second"), _TIME,
              st.sampled_from([0.2, 1.0, 5.0, 30.0])),
    st.builds(Impairment, _WAY, st.just("delay"), st.just("second"), _TIME,
              st.sampled_from([1.0, 5.0, 1000.0]), _LATE),
    st.builds(Impairment, _WAY, st.just("rate"), st.just("second"), _TIME,
              st.sampled_from([5.0, 1000.0]), st.sampled_from([20_000.0, 200_000.0, 1e6])),
)  # fmt: skip
"""Loss, delay, reordering, duplication and damage of packets; outages, steps of the round-trip time
and of the rate."""

links: st.SearchStrategy[list[Impairment]] = weighted(
    st.just([]), st.just([]), st.lists(impairments, max_size=2), st.lists(impairments, max_size=6)
)


class Provider(HypothesisProvider):
    """Hypothesis without the constants that it finds in whatever modules happen to be loaded.

    With them a seed would mean other scripts in an installed release, or beside other tests.
    """

    def _maybe_draw_constant(self, *_about: Any, **_settings: Any) -> None:
        return None


AVAILABLE_PROVIDERS["bentpipe"] = f"{__name__}.{Provider.__name__}"


def drawn(strategy: st.SearchStrategy[Item], count: int, number: int) -> list[Item]:
    """What Hypothesis draws with a seed; the same for the same release of Hypothesis."""
    found: list[Item] = []

    @seed(number)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        backend="bentpipe",
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(item: Item) -> None:
        found.append(item)

    collect()
    return found


class Planner:
    """An endless sequence of scripts that depends on the seed and on what is worth keeping.

    Args:
        suite: name of the suite.
        modes: the modes to try, and their steps.
        number: the seed.
        shared: scripts that others keep, which are tried as they come; None for none.

    Attributes:
        corpus: scripts that reached something new; some of what is tried is made of them.
    """

    def __init__(
        self, suite: str, modes: Mapping[str, Steps], number: int, shared: Shared | None = None
    ) -> None:
        self.corpus: list[Script] = []
        self._suite = suite
        self._modes = modes
        self._seed = number
        self._shared = shared
        self._random = random.Random(f"campaign {suite} {number}")

    def scripts(self) -> Iterator[Script]:
        """Scripts without end, the modes in turn."""
        batch = 0
        while True:
            for mode, steps in self._modes.items():
                if self._shared is not None:
                    yield from (item for item in self._shared.fresh() if item.mode in self._modes)
                numbers = self._random
                fresh = drawn(st.tuples(steps, links), BATCH, self._seed * 1_000_003 + batch)
                # Hypothesis begins with the simplest each time, which is always the same.
                fresh = fresh if batch < len(self._modes) else fresh[1:]
                batch += 1
                for number, (taken, link) in enumerate(fresh):
                    script = Script(
                        self._suite, mode, tuple(taken), tuple(link), numbers.getrandbits(31)
                    )
                    yield script
                    kept = [item for item in self.corpus if item.mode == mode]
                    if kept and number % BRED_EVERY == 0:
                        yield self._bred(numbers.choice(kept), script)

    def _bred(self, kept: Script, fresh: Script) -> Script:
        """A kept script with something of a fresh one."""
        numbers = self._random
        steps, link = list(kept.steps), list(kept.link)
        way = numbers.randrange(5)
        at = numbers.randrange(1, len(steps) + 1)
        if way == 0:
            link = [*link, *fresh.link][-8:]
        elif way == 1:
            link = list(fresh.link)
        elif way == 2 and len(steps) > 2:
            del steps[numbers.randrange(1, len(steps))]
        elif way == 3:
            steps[at:at] = fresh.steps[1:3]
        else:
            steps = steps[:at] + list(fresh.steps[1:])
        steps = steps[: 2 * MOST_STEPS]
        return replace(kept, steps=tuple(steps), link=tuple(link), seed=numbers.getrandbits(31))
