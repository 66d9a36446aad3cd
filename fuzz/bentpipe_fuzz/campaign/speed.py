"""``python -m bentpipe_fuzz.campaign.speed``: conversations a second of processor time.

Drawn, played in the simulation with the true reference and judged by all oracles; nothing is made
small. Two kinds are measured: the usual mix of a campaign, and short conversations, which are an
opening, at most four segments of data (of one the echo, too) and a closing, over a link that does
nothing to packets (:attr:`.Binding.short`). The short ones are then played again from their
scripts, without the oracles. With ``--profile`` it says where the time goes.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from contextlib import nullcontext

import click
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

from bentpipe_fuzz.campaign.binding import binding_of, suites_with_campaign
from bentpipe_fuzz.campaign.engine import Campaign, Tally
from bentpipe_fuzz.campaign.plan import drawn
from bentpipe_fuzz.campaign.run import play, seldom_collecting
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.sharing import Shared

AIM = 150
"""Complete short conversations that one core should play in a second."""

AIM_AGAIN = 1000
"""The same, of those that are played again from their scripts and not judged."""


def reference_of(name: str) -> tuple[Suite, Lane, RunSettings]:
    """A suite, a lane of its true reference and the settings of a run."""
    suite = suite_named(name)
    return suite, *stage(subject_of(suite.folder), suite.profiles[0], "", 0)


def campaign_of(name: str, seed: int, shared: Shared | None = None) -> Campaign:
    """A campaign against the true reference of a suite, which makes nothing small."""
    suite, lane, settings = reference_of(name)
    return Campaign(suite, lambda: lane, settings, seed, shrink_runs=0, shared=shared)


def timed(name: str, conversations: int, seed: int) -> tuple[float, Tally]:
    """Seconds of processor time that so many conversations took, and their tally."""
    campaign = campaign_of(name, seed)
    began = time.process_time()
    for _ in campaign.run(lambda tally: tally.conversations < conversations):
        pass
    return time.process_time() - began, campaign.tally


def timed_short(name: str, conversations: int, seed: int) -> tuple[float, float, int]:
    """Seconds of processor time that so many short ones took, and took again; their packets.

    The first time they are drawn, played and judged, then played alone.
    """
    suite, lane, settings = reference_of(name)
    scripts: list[Script] = []
    packets = 0
    with seldom_collecting():
        began = time.process_time()
        for number, steps in enumerate(drawn(binding_of(suite).short, conversations, seed)):
            scripts.append(Script(name, "honest", tuple(steps), (), number))
            found = play(scripts[-1], lane, settings)
            packets += sum(item.point == "iut" for item in found.outcome.captured)
        judged = time.process_time()
        for script in scripts:
            play(script, lane, settings, judging=False)
        return judged - began, time.process_time() - judged, packets


def _met(rate: float, aim: int) -> str:
    return f"at least {aim:,}: {'met' if rate >= aim else 'MISSED'}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suites", nargs=-1, type=click.Choice(suites_with_campaign()))
@click.option("--conversations", type=click.IntRange(1), default=600, show_default=True)
@click.option("--seed", default=1300, show_default=True, help="Of the campaign.")
@click.option("--profile", "profiled", is_flag=True, help="Print the costliest functions.")
def main(suites: tuple[str, ...], conversations: int, seed: int, profiled: bool) -> None:
    """Measure how fast campaigns against the references of SUITES (all) are."""
    for name in suites or suites_with_campaign():
        profile = cProfile.Profile() if profiled else None
        with profile or nullcontext():
            seconds, tally = timed(name, conversations, seed)
            short, again, packets = timed_short(name, conversations, seed)
        rate, replayed = conversations / short, conversations / again
        click.echo(
            f"{name}: a second of processor time is {conversations / seconds:.0f} conversations of "
            f"the usual mix, of {tally.packets / conversations:.0f} packets each; {rate:.0f} short "
            f"ones of {packets / conversations:.0f} ({_met(rate, AIM)}), {replayed:.0f} of them "
            f"played again without oracles ({_met(replayed, AIM_AGAIN)})"
        )
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
