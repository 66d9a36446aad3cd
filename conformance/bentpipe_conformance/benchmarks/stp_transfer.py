"""A file from one host to another over a satellite, by STP: ``make stp-transfer``.

Boots the bed, lays out a link with random loss and reordering between two hosts, runs ``bentpipe
stp recv`` on one and ``bentpipe stp send`` on the other, and compares the SHA-256 of both files.
The programs are those that users run; nothing here knows the protocol.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from bentpipe_reference.common.link.profile import Direction, LinkProfile

from bentpipe_conformance.bed.check import profile_from_json
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.kernel import digest, find_virtual
from bentpipe_conformance.bed.place import NO_VIRTUAL_KERNEL
from bentpipe_conformance.bed.two_hosts import ADDRESSES, TwoHosts
from bentpipe_conformance.bed.uml import run
from bentpipe_conformance.run.opening import load_link

PORT = 7253
PIECE = 1 << 20
OCTETS = 100_000_000
LOSS = 0.001
"""Share of packets lost each way: a window of some 40 packets on average, half of the link's."""
REORDERED, REORDERED_BY_S = 0.01, 0.03
"""Share of packets that arrive late, and by how much: behind the three that follow them."""
GUEST_SECONDS = 3600.0
MEMORY_MIB = 1024

_STP = (sys.executable, "-m", "bentpipe_conformance.cli.main", "stp")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a transfer.

    Attributes:
        octets: length of the file sent.
        same: whether the file that arrived has the same SHA-256.
        sha256: of the file sent.
        link_seconds: on the hosts' clock, from the start of the sending program to its end.
        wall_seconds: on the wall clock, the guest's boot included.
        send: the sender's report.
        receive: the receiver's report.
        trouble: error messages of the programs, empty if both succeeded.
    """

    octets: int
    same: bool
    sha256: str
    link_seconds: float
    wall_seconds: float
    send: dict[str, Any]
    receive: dict[str, Any]
    trouble: str


def lossy(profile: LinkProfile, loss: float, reordered: float) -> LinkProfile:
    """The profile with faults in both directions."""

    def faulty(direction: Direction) -> Direction:
        return replace(
            direction,
            loss_probability=loss,
            reorder_probability=reordered,
            reorder_delay_s=REORDERED_BY_S if reordered else 0.0,
        )

    return replace(profile, forward=faulty(profile.forward), return_=faulty(profile.return_))


def transfer(profile: LinkProfile, octets: int, seed: int, protocol: str = "") -> Outcome:
    """Carry a file of ``octets`` over ``profile`` inside a guest with a virtual clock.

    Args:
        profile: the link.
        octets: length of the file.
        seed: of the file, the losses and the reordering.
        protocol: ``253`` or ``254`` for directly over IP, empty for UDP.

    Raises:
        BedError: there is no such kernel here, or the guest failed.
    """
    kernel = find_virtual()
    if kernel is None:
        raise BedError(NO_VIRTUAL_KERNEL)
    with tempfile.TemporaryDirectory(prefix="bentpipe-transfer-") as folder:
        sent = Path(folder) / "sent"
        sha256 = write_random(sent, octets, seed)
        order = {"link": asdict(profile), "folder": folder, "seed": seed, "ip": protocol}
        command = [sys.executable, "-m", "bentpipe_conformance.benchmarks.stp_transfer"]
        result = run(
            kernel, [*command, json.dumps(order)], memory_mib=MEMORY_MIB, timeout=GUEST_SECONDS
        )
        if result.status:
            raise BedError(
                f"The transfer's guest ended with status {result.status}: "
                f"{last_line(result.stderr)}."
            )
        arrived = Path(folder) / "arrived"
        same = arrived.is_file() and digest(arrived) == sha256
    told = json.loads(result.stdout)
    return Outcome(octets, same, sha256, wall_seconds=result.seconds, **told)


def write_random(path: Path, octets: int, seed: int) -> str:
    """Fill a file with random octets; their SHA-256."""
    numbers, seen = random.Random(seed), hashlib.sha256()
    with path.open("wb") as handle:
        for start in range(0, octets, PIECE):
            piece = numbers.randbytes(min(PIECE, octets - start))
            handle.write(piece)
            seen.update(piece)
    return seen.hexdigest()


def inside(order: dict[str, Any]) -> dict[str, Any]:
    """What happens in the guest: two hosts, two programs; part of an :class:`Outcome`.

    The sender is awaited first: without its success the receiver may wait for ever.
    """
    folder = Path(order["folder"])
    profile = profile_from_json(json.dumps(order["link"]))
    place = ADDRESSES[1] if order["ip"] else f"{ADDRESSES[1]}:{PORT}"
    options = ["--json", "--path-reorders", *(["--ip", order["ip"]] if order["ip"] else [])]
    with TwoHosts(profile, order["seed"]) as hosts:
        arrived, source = str(folder / "arrived"), str(folder / "sent")
        receiver = hosts.start(1, [*_STP, "recv", "--listen", place, *options, arrived])
        assert receiver.stderr is not None
        announced = receiver.stderr.readline()
        started = time.monotonic()
        sender = hosts.start(0, [*_STP, "send", *options, source, place])
        sent, sender_errors = sender.communicate()
        seconds = time.monotonic() - started
        if sender.returncode:
            receiver.kill()
        received, receiver_errors = receiver.communicate()
    trouble = "" if not (sender.returncode or receiver.returncode) else (
        f"{announced}{receiver_errors}{sender_errors}".strip()
    )  # fmt: skip
    return {
        "link_seconds": seconds,
        "send": json.loads(sent) if sent else {},
        "receive": json.loads(received) if received else {},
        "trouble": trouble,
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--octets", type=click.IntRange(1), default=OCTETS, show_default=True)
@click.option("--link", default="geo", show_default=True, help="Link profile: ID or TOML file.")
@click.option("--loss", type=click.FloatRange(0, 0.5), default=LOSS, show_default=True)
@click.option("--reordered", type=click.FloatRange(0, 0.5), default=REORDERED, show_default=True)
@click.option("--ip", type=click.Choice(["253", "254"]), help="Not in UDP.")
@click.option("--seed", default=1, show_default=True, help="Of the file, losses and reordering.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def main(
    octets: int, link: str, loss: float, reordered: float, ip: str | None, seed: int, as_json: bool
) -> None:
    """Carry a file over a satellite link by STP, and compare what arrives."""
    try:
        outcome = transfer(lossy(load_link(link), loss, reordered), octets, seed, ip or "")
    except (BedError, ValueError) as error:
        click.echo(f"stp-transfer: {error}", err=True)
        sys.exit(3)
    if as_json:
        click.echo(json.dumps(asdict(outcome), indent=2))
    else:
        for line in lines(outcome, link, loss, reordered, seed):
            click.echo(line)
    sys.exit(0 if outcome.same and not outcome.trouble else 1)


def lines(outcome: Outcome, link: str, loss: float, reordered: float, seed: int) -> list[str]:
    """The outcome for people."""
    rate = 8 * outcome.octets / outcome.link_seconds / 1e3 if outcome.link_seconds else 0.0
    told = [
        f"link          {link}, {loss:.3%} of packets lost and {reordered:.1%} reordered each way, "
        f"seed {seed}",
        f"octets        {outcome.octets}",
        f"SHA-256       {outcome.sha256} {'agrees' if outcome.same else 'DOES NOT AGREE'}",
        f"link time     {outcome.link_seconds:.1f} s, {rate:.0f} kb/s",
        f"wall time     {outcome.wall_seconds:.1f} s",
    ]
    if "retransmissions" in outcome.send:
        told.append(f"retransmitted {outcome.send['retransmissions']} SDs")
    if outcome.trouble:
        told.append(f"trouble       {outcome.trouble}")
    return told


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(inside(json.loads(sys.argv[1]))))
    else:
        main()
