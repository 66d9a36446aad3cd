"""Encounters of two hosts of ns-3 drawn at random: attributes of its TCP, users and links.

ns-3 simulates in virtual time with numbers of its own, so that a seed gives the same packets again.
"""

from __future__ import annotations

import random
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bentpipe_reference.common.link.profile import Direction

from bentpipe_conformance.bed.commands import run_briefly
from bentpipe_conformance.bed.encounter import Encounter, Evidence, Meeting, Script
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.evidence.pcapng import read_capture
from bentpipe_conformance.iut.build import Progress, build
from bentpipe_conformance.selftest.linux import (
    LONGEST_S,
    MOST_PACKETS,
    draw_link,
    draw_scripts,
    reads_slowly,
    reorders,
)

ADDRESSES = "10.79.0.1", "10.79.0.2"
CAPTURES = "first.pcap", "second.pcap"
_FIRST_PORT = 20_000
_ENDS = 0, -signal.SIGSEGV
"""It may fail while it sends (``TcpRateLinux::SkbSent`` of 3.37); the packets until then count."""
_SOURCE_ADDRESS = slice(12, 16)

CONTROLS: Mapping[str, tuple[str, str]] = {
    "TcpNewReno": ("reno", "no"),
    "TcpLinuxReno": ("reno", "unlimited"),
    "TcpCubic": ("cubic", "unlimited"),
    "TcpHybla": ("hybla", "unlimited"),
    "TcpVegas": ("vegas", "no"),
    "TcpVeno": ("other", "no"),
    "TcpHighSpeed": ("other", "no"),
}
"""Congestion controls and what they claim: ``congestion_control`` and ``byte_counting``."""

_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "SocketType": ("TcpNewReno", "TcpNewReno", "TcpCubic", *CONTROLS),
    "RecoveryType": ("TcpPrrRecovery", "TcpPrrRecovery", "TcpClassicRecovery"),
    "Sack": ("true", "true", "false"),
    "Timestamp": ("true", "true", "false"),
    "WindowScaling": ("true", "true", "false"),
    "LimitedTransmit": ("true", "true", "false"),
    "UseEcn": ("Off", "Off", "On", "AcceptOnly"),
    "TcpNoDelay": ("true", "false"),
    # With all options and no IP options 1400 octets fit the devices' MTU of 1500.
    "SegmentSize": ("536", "536", "256", "1000", "1400"),
    "InitialCwnd": ("10", "10", "1", "2", "3", "4"),
    "DelAckCount": ("2", "2", "1"),
    "DelAckTimeout": ("200ms", "200ms", "40ms", "400ms"),
    "RcvBufSize": ("131072", "131072", "4096", "32768", "1048576"),
    "SndBufSize": ("131072", "131072", "4096", "32768", "1048576"),
}
_TYPES = "SocketType", "RecoveryType"
"""Attributes whose values are types of ns-3."""


def draw_encounter(seed: int) -> Encounter:
    """The encounter of a seed; the ``sysctls`` of a host are attributes of ns-3's TCP."""
    numbers = random.Random(f"ns-3 {seed}")
    link = draw_link(numbers)
    first, second = (
        {name: numbers.choice(values) for name, values in _ATTRIBUTES.items()} for _ in ADDRESSES
    )
    meetings = [
        Meeting(
            numbers.uniform(0.0, LONGEST_S / 3), numbers.randrange(2), _FIRST_PORT + number,
            ({}, {}), draw_scripts(numbers),
        )
        for number in range(numbers.choice((1, 2, 3)))
    ]  # fmt: skip
    return Encounter(link, seed, (first, second), meetings, LONGEST_S, MOST_PACKETS)


def statement(attributes: Mapping[str, str], _: Mapping[str, Any]) -> dict[str, Any]:
    """The conformance statement that the attributes of a host imply."""

    def on(name: str) -> bool:
        return attributes[name] == "true"

    control, counting = CONTROLS[attributes["SocketType"]]
    return {
        **dict.fromkeys(("sack", "sack_sender", "sack_receiver"), on("Sack")),
        "timestamps": on("Timestamp"),
        "window_scale": on("WindowScaling"),
        "limited_transmit": on("LimitedTransmit"),
        "fast_retransmit": True,
        "newreno": True,
        "prr": attributes["RecoveryType"] == "TcpPrrRecovery",
        "ecn": attributes["UseEcn"] != "Off",
        "nagle": not on("TcpNoDelay"),
        "congestion_control": control,
        "byte_counting": counting,
        "initial_window_segments": int(attributes["InitialCwnd"]),
        "slow_start_by_delay": False,
    }


def settings(encounter: Encounter, meeting: Meeting, host: int) -> dict[str, Any]:
    """What was set at one end of a connection, ``peer.`` before what was set at the other."""
    found: dict[str, Any] = {"link": "reorders" if reorders(encounter.link) else "in order"}
    found["sack"] = "on" if all(each["Sack"] == "true" for each in encounter.sysctls) else "off"
    for end, prefix in ((host, ""), (1 - host, "peer.")):
        script = meeting.scripts[int(meeting.caller != end)]
        writes = bool(script.writes) or script.endless or script.echoes
        own = {
            **encounter.sysctls[end],
            "reads": "slowly" if reads_slowly(script) else "at once",
            "writes": "yes" if writes else "no",
        }
        found |= {f"{prefix}{name}": value for name, value in own.items()}
    return found


def order(encounter: Encounter) -> str:
    """An encounter as text, for ``iuts/ns3/meet.cc``."""
    return "\n".join(" ".join(map(str, words)) for words in _statements(encounter)) + "\n"


def _statements(encounter: Encounter) -> Iterator[Iterable[Any]]:
    yield "run", encounter.seed, encounter.seconds, encounter.most_packets
    for way in (encounter.link.forward, encounter.link.return_):
        yield _way(way)
    for host, attributes in enumerate(encounter.sysctls):
        for name, value in attributes.items():
            yield "set", host, name, f"ns3::{value}" if name in _TYPES else value
    for meeting in encounter.meetings:
        yield "meeting", meeting.at, meeting.caller, meeting.port
        for script in meeting.scripts:
            yield _user(script)


def _way(way: Direction) -> Iterable[Any]:
    return (
        "way", way.rate_bit_s, way.delay_s, way.queue_packets, way.loss_probability,
        way.reorder_probability, way.reorder_delay_s, way.duplicate_probability,
    )  # fmt: skip


def _user(script: Script) -> Iterable[Any]:
    return (
        "user", int(script.endless), int(script.echoes), script.reading, script.pause,
        *script.deaf, script.ends_at, script.end, len(script.writes),
        *(number for write in script.writes for number in write),
    )  # fmt: skip


def prepare(progress: Progress) -> None:
    """Build the program before many processes want it.

    Raises:
        IutUnavailable: ns-3 or a compiler is not here; the message says how to get it.
    """
    build("ns3", progress)


def play(encounters: Sequence[Encounter]) -> list[Evidence]:
    """Let encounters take place in the simulator.

    Raises:
        IutUnavailable: see :func:`prepare`.
        BedError: the simulator failed.
    """
    program = build("ns3") / "meet"
    return [play_one(program, encounter) for encounter in encounters]


def play_one(program: Path, encounter: Encounter) -> Evidence:
    """What ``program`` captures of an encounter at either host.

    Raises:
        BedError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="bentpipe-ns3-") as folder:
        result = run_briefly([program, folder], order(encounter))
        if result.returncode not in _ENDS:
            said = last_line(result.stderr)
            raise BedError(f"ns-3 failed in the encounter of seed {encounter.seed}: {said}.")
        first, second = (
            [
                (frame.time_ns or 0, _source(frame.data) != address, frame.data)
                for frame in read_capture(Path(folder, name))
            ]
            for name, address in zip(CAPTURES, ADDRESSES, strict=True)
        )
    return first, second


def _source(packet: bytes) -> str:
    return ".".join(map(str, packet[_SOURCE_ADDRESS]))
