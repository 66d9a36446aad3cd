"""``python -m bentpipe_fuzz.campaign.speed``: conversations a second of processor time.

Drawn, played in the simulation with the true reference and judged by all oracles; nothing is made
small. With ``--profile`` it says where the time goes.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from contextlib import nullcontext

import click
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

from bentpipe_fuzz.campaign.binding import suites_with_campaign
from bentpipe_fuzz.campaign.engine import Campaign, Tally
from bentpipe_fuzz.campaign.sharing import Shared

AIM = 150
"""Complete conversations that one core should play in a second."""


def campaign_of(name: str, seed: int, shared: Shared | None = None) -> Campaign:
    """A campaign against the true reference of a suite, which makes nothing small."""
    suite = suite_named(name)
    lane, settings = stage(subject_of(suite.folder), suite.profiles[0], "", 0)
    return Campaign(suite, lambda: lane, settings, seed, shrink_runs=0, shared=shared)


def timed(name: str, conversations: int, seed: int) -> tuple[float, Tally]:
    """Seconds of processor time that so many conversations took, and their tally."""
    campaign = campaign_of(name, seed)
    began = time.process_time()
    for _ in campaign.run(lambda tally: tally.conversations < conversations):
        pass
    return time.process_time() - began, campaign.tally


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
        rate = conversations / seconds
        click.echo(
            f"{name}: {rate:.0f} conversations a second of processor time (at least {AIM}: "
            f"{'met' if rate >= AIM else 'MISSED'}), {tally.packets / seconds:.0f} packets"
        )
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
