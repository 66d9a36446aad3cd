"""``python -m bentpipe_fuzz.inputs.codecs PROTOCOL``: the codecs of a protocol against each other.

They are the judge's, the reference's and Scapy's layers, which were written apart. Whatever packet
they get, they read it or refuse it, and all read the same. With ``--atheris`` libFuzzer chooses the
packets by coverage, where the package atheris is installed.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import click

from bentpipe_fuzz.inputs import covering
from bentpipe_fuzz.inputs.guided import guide
from bentpipe_fuzz.inputs.harness import PROTOCOLS, Disagreement, Harness, harness_of
from bentpipe_fuzz.inputs.packets import packets
from bentpipe_fuzz.inputs.targets import CORPUS

AIM = 50_000
"""Packets that two codecs should read and compare in a second of processor time."""

CHUNK = 10_000
"""Packets that are made at once."""

SOUND = 5
"""Packets of the corpus that are taken are changed more often by this: a minimal corpus has few."""

LAYERED = 64
"""Scapy reads one of so many."""

MADE, BOTH, ALL = "made", "read by tester and reference, compared", "Scapy read and compared too"


class Measured:
    """What codecs made of packets, and the processor time it took.

    Attributes:
        taken: packets that the reference reads.
        problems: of what broke a codec or is read differently, the last line and the packet.
        seconds, counts: of processor time, and packets, by what was done.
    """

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.harness: Harness = harness_of(protocol)
        self.taken = 0
        self.problems: list[tuple[str, bytes]] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()

    def run(self, total: int, seed: int) -> None:
        """Make so many packets of the corpus, and let all codecs read them."""
        corpus = corpus_of(self.protocol)
        # What is loaded at first use is loaded here.
        sound = [packet for packet in corpus if self.agrees(packet, True)]
        source = packets([*corpus, *sound * SOUND], seed)
        while self.counts[MADE] < total and len(self.problems) < 10:
            made: list[bytes] = []
            size = min(CHUNK, total - self.counts[MADE])
            self._timed(MADE, lambda: made.extend(islice(source, size)), size)  # noqa: B023
            for name in ("tester", "reference"):
                read = self.harness.readers[name]
                self._timed(f"read by the {name} alone", lambda: self._reads(read, made), size)  # noqa: B023
            self._timed(BOTH, lambda: self._compares(made, False), size)  # noqa: B023
            few = made[::LAYERED]
            self._timed(ALL, lambda: self._compares(few, True), len(few))  # noqa: B023

    def _timed(self, what: str, act: Callable[[], None], number: int) -> None:
        began = time.process_time()
        act()
        self.seconds[what] += time.process_time() - began
        self.counts[what] += number

    def _reads(self, read: Callable[[bytes], object], made: Sequence[bytes]) -> None:
        for packet in made:
            try:
                read(packet)
            except Exception as error:
                self.problems.append((f"{type(error).__name__}: {error}", packet))

    def _compares(self, made: Sequence[bytes], layers: bool) -> None:
        for packet in made:
            self.taken += self.agrees(packet, layers) and not layers

    def agrees(self, packet: bytes, layers: bool) -> bool:
        """Whether the codecs agree on a packet, and take it."""
        try:
            return self.harness.agree(packet, layers=layers)
        except Disagreement as error:
            self.problems.append((str(error), packet))
        except Exception as error:
            self.problems.append((f"{type(error).__name__}: {error}", packet))
        return False

    def rate(self, *whats: str) -> float:
        """Packets a second for which all of this was done one after the other."""
        return 1 / sum(self.seconds[what] / (self.counts[what] or 1) for what in whats)


def corpus_of(protocol: str) -> list[bytes]:
    """The packets of a protocol's corpus."""
    return [path.read_bytes() for path in sorted((CORPUS / protocol).iterdir())]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("protocol", type=click.Choice(PROTOCOLS))
@click.option("--packets", "total", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("bentpipe-runs/inputs"),
              show_default=True, help="Where packets that break something are kept.")  # fmt: skip
@click.option("--atheris", "guided", is_flag=True, help="Guided by coverage, --packets of them.")
@click.option("--minimal", is_flag=True, help="Of FILES keep a minimal corpus in --out, no more.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(
    protocol: str, total: int, seed: int, out: Path, guided: bool, minimal: bool,
    files: tuple[Path, ...],
) -> None:  # fmt: skip
    """Let all codecs of PROTOCOL read the same packets; with FILES, these alone and as they are."""
    if guided:
        read = partial(harness_of(protocol).agree, layers=False)
        guide(read, CORPUS / protocol, out, runs=total, seed=seed, longest=200)
    if minimal:
        packets = [path.read_bytes() for path in files]
        keep(covering.minimal(packets, harness_of(protocol).agree), out)
        return
    measured = Measured(protocol)
    if files:
        for path in files:
            measured.agrees(path.read_bytes(), True)
    else:
        measured.run(total, seed)
        if measured.counts[MADE]:
            report(measured)
    for text, packet in measured.problems:
        (path,) = keep([packet], out, f"{protocol}-")
        click.echo(f"{path}: {text}", err=True)
    sys.exit(1 if measured.problems else 0)


def keep(packets: Iterable[bytes], folder: Path, before: str = "") -> list[Path]:
    """Write packets into a folder, each under its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for packet in packets:
        paths.append(folder / f"{before}{hashlib.sha256(packet).hexdigest()[:12]}")
        paths[-1].write_bytes(packet)
    return paths


def report(measured: Measured) -> None:
    """Print how many packets a second of processor time."""
    made = measured.counts[MADE]
    click.echo(f"{measured.protocol}: {made:,} packets, {measured.taken / made:.0%} are taken")
    for what, count in measured.counts.items():
        click.echo(f"{measured.rate(what):12,.0f} a second {what} ({count:,})")
    rate = measured.rate(MADE, BOTH)
    word = "met" if rate >= AIM else "MISSED"
    click.echo(f"{rate:12,.0f} a second made, read by both and compared (at least {AIM:,}: {word})")


if __name__ == "__main__":
    main()
