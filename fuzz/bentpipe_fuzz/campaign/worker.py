"""A shard of a campaign, in the place where the bed is: this process, another, or a guest."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.opening import load_link, open_lane, run_settings

from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.engine import Campaign, Discovery, Tally
from bentpipe_fuzz.campaign.replay import Replay, loads
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.sharing import shared
from bentpipe_fuzz.campaign.storage import (
    PLAYING,
    STOP,
    Figures,
    Order,
    store,
    store_figures,
    write,
)

STORED_EVERY_S = 0.5
"""Seconds between two times at which a shard stores its figures."""


def campaign_of(order: Order, before: Callable[[Script], None] = lambda _: None) -> Campaign:
    """The campaign of a shard; ``before`` is told every script."""
    description, link = load_iut(order.iut), load_link(order.link)
    suite = description.suite
    settings = run_settings(description, link, order.profile, order.seed)

    def opened() -> Lane:
        return open_lane(description, link, order.seed, order.timing_error)

    return Campaign(
        suite, opened, settings, order.seed, modes=order.modes,
        lateness=lambda trace: lateness(trace, link), shrink_runs=order.shrink_runs,
        patience=order.patience, before=before,
        shared=shared(order.share, suite.name, binding_of(suite).check) if order.share else None,
    )  # fmt: skip


def work(
    order: Order, goes_on: Callable[[Tally], bool],
    told: Callable[[Tally, Discovery | None], None],
    before: Callable[[Script], None] = lambda _: None,
) -> Tally:  # fmt: skip
    """Run a shard, storing each finding as it comes; it plays one conversation in any case."""
    suite, folder = load_iut(order.iut).suite, Path(order.folder)
    campaign = campaign_of(order, before)

    def wanted(tally: Tally) -> bool:
        if not tally.conversations:
            return True
        return (not order.examples or tally.conversations < order.examples) and goes_on(tally)

    last = 0.0
    try:
        for found in campaign.run(wanted):
            if found is not None:
                store(found, order, suite)
            told(campaign.tally, found)
            now = time.monotonic()
            if found is not None or now - last > STORED_EVERY_S:
                last = now
                store_figures(folder, Figures.of(campaign.tally).document())
    finally:
        store_figures(folder, Figures.of(campaign.tally).document())
    return campaign.tally


def work_script(order: Order) -> Tally:
    """Play the script of a replay file and store what it shows."""
    suite = load_iut(order.iut).suite
    campaign = campaign_of(order)
    for found in campaign.run_one(loads(order.replay).script):
        store(found, order, suite)
    store_figures(Path(order.folder), Figures.of(campaign.tally).document())
    return campaign.tally


def main(arguments: Sequence[str]) -> int:
    """``python -m bentpipe_fuzz.campaign.worker ORDER``: run it in this place."""
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    order = Order(**{**document, "modes": tuple(document["modes"])})
    if order.replay:
        work_script(order)
        return 0
    # Inside a guest the clock is virtual; whoever started it ends it when the time is up.
    count = 0

    def told(tally: Tally, _found: Discovery | None) -> None:
        nonlocal count
        count += 1
        if not count % STORED_EVERY:
            store_figures(Path(order.folder), Figures.of(tally).document())

    def before(script: Script) -> None:
        playing = Replay(script, order.iut, order.link, order.profile, seed=order.seed)
        write(Path(order.folder) / PLAYING, playing.dumps().encode())

    work(order, lambda _: not (Path(order.folder) / STOP).exists(), told, before)
    return 0


STORED_EVERY = 10
"""Conversations, likewise, where the clock may stand still."""


def dump(order: Order, path: Path) -> None:
    """Write an order for :func:`main`."""
    path.write_text(json.dumps(asdict(order)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
