"""Encounters of two Linux hosts drawn at random: sysctls, socket options, users and links.

What a host is set to do goes into its conformance statement; nothing else about it is assumed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bentpipe_reference.common.link.profile import Direction, LinkProfile

from bentpipe_conformance.bed.encounter import Encounter, Meeting, Script
from bentpipe_conformance.engine.peer import STANDARD_SERVICES

LONGEST_S = 90.0
MOST_PACKETS = 5000
"""At one side of the link: judging takes longer than sending."""

WIDER_FROM = 1_000_000
"""Encounters from this seed on draw more; those before stay what they were when they were named."""

FURTHER_FROM = 3_000_000
"""From this seed on encounters draw more again: what operators set for satellites and proxies."""

CONTROLS = ("cubic", "cubic", "reno", "reno", "bbr", "hybla", "vegas", "westwood")
"""Congestion controls of the bed's kernel, the usual ones twice."""

_LOSSES = (0.0, 0.0, 0.002, 0.01, 0.03, 0.1)
_ENDLESS = STANDARD_SERVICES["chargen"]
_FIRST_PORT = 20_000
_BOUNDED = ("4096 8192 16384", "4096 65536 65536")


def draw_encounter(seed: int) -> Encounter:
    """The encounter of a seed: one link, two hosts, and one to four connections between them."""
    numbers = random.Random(f"linux {seed}")
    link = draw_link(numbers)
    sysctls = _draw_sysctls(numbers), _draw_sysctls(numbers)
    taken: set[tuple[int, int]] = set()
    meetings = [_draw_meeting(numbers, taken) for _ in range(numbers.choice((1, 2, 3, 4)))]
    drawn = Encounter(link, seed, sysctls, meetings, LONGEST_S, MOST_PACKETS)
    drawn = _widened(drawn, numbers) if seed >= WIDER_FROM else drawn
    return _widened_further(drawn, numbers) if seed >= FURTHER_FROM else drawn


def _widened(drawn: Encounter, numbers: random.Random) -> Encounter:
    """With other MTUs, more sysctls, and narrow windows."""
    link = replace(drawn.link, mtu=numbers.choice((296, 576, 900, 1280, 1400, 1492, 1500)))
    narrowed = partial(_narrowed, numbers)
    return replace(_with_more(drawn, numbers, _WIDER_SYSCTLS, narrowed), link=link)


def _widened_further(drawn: Encounter, numbers: random.Random) -> Encounter:
    """With sockets that acknowledge, hold back, wake and pace otherwise."""

    def with_more(options: Mapping[str, Any]) -> dict[str, Any]:
        rare = {
            name: numbers.choice(values)
            for name, values in _FURTHER_OPTIONS.items() if numbers.random() < 0.15
        }  # fmt: skip
        return {**options, **rare}

    return _with_more(drawn, numbers, _FURTHER_SYSCTLS, with_more)


def _with_more(
    drawn: Encounter, numbers: random.Random, sysctls: Mapping[str, tuple[str, ...]],
    altered: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> Encounter:  # fmt: skip
    """An encounter with more sysctls at each host and with altered options of each socket."""
    first, second = (
        {**own, **{f"net.ipv4.{name}": numbers.choice(values) for name, values in sysctls.items()}}
        for own in drawn.sysctls
    )
    meetings = [
        replace(meeting, options=(altered(meeting.options[0]), altered(meeting.options[1])))
        for meeting in drawn.meetings
    ]
    return replace(drawn, sysctls=(first, second), meetings=meetings)


def _narrowed(numbers: random.Random, options: Mapping[str, Any]) -> dict[str, Any]:
    if numbers.random() < 0.2:
        return {**options, "clamp": numbers.choice((1000, 2500, 6000, 20_000))}
    return dict(options)


_WIDER_SYSCTLS: Mapping[str, tuple[str, ...]] = {
    "tcp_ecn": ("1", "1", "2", "0"),
    "tcp_autocorking": ("0", "1"),
    "tcp_tw_reuse": ("0", "1", "2"),
    "tcp_min_tso_segs": ("2", "1", "8"),
    "tcp_tso_win_divisor": ("3", "0", "1", "8"),
    "tcp_limit_output_bytes": ("1048576", "1048576", "4096"),
    "tcp_adv_win_scale": ("1", "1", "-2", "2"),
    "tcp_app_win": ("31", "31", "2"),
    "tcp_notsent_lowat": ("4294967295", "4294967295", "4096"),
    "tcp_mtu_probing": ("0", "0", "1", "2"),
    "tcp_invalid_ratelimit": ("500", "500", "0"),
    "tcp_comp_sack_delay_ns": ("1000000", "1000000", "10000000"),
    "tcp_fin_timeout": ("60", "5"),
    "tcp_rfc1337": ("0", "1"),
}
"""Beside those of every encounter."""

_FURTHER_SYSCTLS: Mapping[str, tuple[str, ...]] = {
    "tcp_pingpong_thresh": ("1", "1", "3"),
    "tcp_backlog_ack_defer": ("1", "0"),
    "tcp_rto_min_us": ("200000", "200000", "1000000"),
    "tcp_max_reordering": ("300", "300", "8"),
    "tcp_base_mss": ("1024", "512"),
    "tcp_comp_sack_slack_ns": ("100000", "5000000"),
    "tcp_pacing_ss_ratio": ("200", "120"),
    "tcp_workaround_signed_windows": ("0", "0", "1"),
}
_FURTHER_OPTIONS: Mapping[str, tuple[int, ...]] = {
    "quickack": (0, 1), "cork": (1,), "low": (3000, 20_000), "pacing_rate": (20_000, 200_000),
}  # fmt: skip


def draw_link(numbers: random.Random) -> LinkProfile:
    """A link that loses packets; every fourth reorders and duplicates them too."""
    delay = numbers.choice((0.001, 0.02, 0.06, 0.15, 0.3))
    untidy = numbers.random() < 0.25
    back = delay * numbers.choice((1.0, 1.0, 0.2))
    forward = _draw_direction(numbers, delay, untidy)
    return LinkProfile(
        "drawn", "drawn at random", "", forward, _draw_direction(numbers, back, untidy),
        mtu=numbers.choice((1500, 1500, 1500, 1280, 1006, 576)),
    )  # fmt: skip


def _draw_direction(numbers: random.Random, delay: float, untidy: bool) -> Direction:
    # netem reorders only behind a rate, and without one Linux soon sends more than can be judged.
    return Direction(
        rate_bit_s=numbers.choice((6e4, 3e5, 1.3e6, 6e6)),
        delay_s=delay,
        queue_packets=numbers.choice((8, 25, 50, 200)),
        loss_probability=numbers.choice(_LOSSES),
        reorder_probability=numbers.choice((0.0, 0.02, 0.2)) if untidy else 0.0,
        reorder_delay_s=numbers.choice((0.001, 0.02, 0.1)) if untidy else 0.0,
        duplicate_probability=numbers.choice((0.0, 0.02)) if untidy else 0.0,
    )


def _draw_sysctls(numbers: random.Random) -> dict[str, str]:
    """Of one host; a parameter that is left out keeps its default more often than not."""
    choices: dict[str, tuple[str, ...]] = {
        "tcp_sack": ("1", "1", "1", "0"),
        "tcp_dsack": ("1", "1", "1", "0"),
        "tcp_timestamps": ("1", "1", "0", "2"),
        "tcp_window_scaling": ("1", "1", "1", "0"),
        "tcp_recovery": ("1", "1", "0", "3", "5"),
        "tcp_early_retrans": ("3", "3", "0"),
        "tcp_frto": ("2", "2", "0"),
        "tcp_ecn": ("2", "2", "0", "1"),
        "tcp_slow_start_after_idle": ("1", "1", "1", "0"),
        "tcp_reordering": ("3", "3", "3", "10"),
        "tcp_retrans_collapse": ("1", "0"),
        "tcp_autocorking": ("1", "0"),
        "tcp_thin_linear_timeouts": ("0", "0", "0", "1"),
        "tcp_comp_sack_nr": ("44", "44", "0"),
        "tcp_moderate_rcvbuf": ("1", "1", "0"),
        "tcp_shrink_window": ("0", "0", "0", "1"),
        "tcp_rmem": ("4096 131072 6291456", "4096 131072 6291456", *_BOUNDED,
                     "16777216 16777216 16777216"),
        "tcp_wmem": ("4096 16384 4194304", "4096 16384 4194304", "4096 8192 16384"),
        "tcp_no_metrics_save": ("1", "1", "0"),
    }  # fmt: skip
    drawn = {name: numbers.choice(values) for name, values in choices.items()}
    return {f"net.ipv4.{name}": value for name, value in drawn.items()}


def _draw_meeting(numbers: random.Random, taken: set[tuple[int, int]]) -> Meeting:
    caller = numbers.randrange(2)
    user, server = draw_scripts(numbers)
    service = _ENDLESS if server.endless else _FIRST_PORT + len(taken)
    port = _FIRST_PORT + len(taken) if (caller, service) in taken else service
    taken.add((caller, port))
    options = _draw_options(numbers), _draw_options(numbers)
    return Meeting(numbers.uniform(0.0, LONGEST_S / 3), caller, port, options, (user, server))


def _draw_options(numbers: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "congestion": numbers.choice(CONTROLS), "nodelay": numbers.randrange(2)
    }  # fmt: skip
    rare: dict[str, tuple[int, ...]] = {
        "mss": (256, 536, 1000), "send": (4096, 65536, 1 << 20), "receive": (4096, 32768, 1 << 20),
        "keepalive": (1, 5),
    }  # fmt: skip
    for name, values in rare.items():
        if numbers.random() < 0.25:
            options[name] = numbers.choice(values)
    return options


# -- users: the caller's script and the other's ---------------------------------------------------

_SIZES = (1, 300, 5000, 60_000, 250_000, 1_000_000)


def draw_scripts(numbers: random.Random) -> tuple[Script, Script]:
    """What the two users of a connection do, the caller's first."""
    kinds = _upload, _upload, _download, _dialogue, _both, _restless
    return numbers.choice(kinds)(numbers)


def _reader(numbers: random.Random, **others: Any) -> Script:
    """One that may read slowly, in small pieces, or not at all for a while."""
    slow = numbers.random() < 0.3
    start = numbers.uniform(0.1, 10.0) if numbers.random() < 0.2 else 0.0
    return Script(
        reading=numbers.choice((100, 2000, 20_000)) if slow else 1 << 16,
        pause=numbers.choice((0.01, 0.1, 1.0)) if slow else 0.0,
        deaf=(start, start + numbers.choice((0.5, 5.0, 30.0))) if start else (0.0, 0.0),
        **others,
    )


def _end(numbers: random.Random) -> str:
    return numbers.choice(("close", "shutdown", "shutdown", "abort"))


def _upload(numbers: random.Random) -> tuple[Script, Script]:
    ends_at = numbers.uniform(1.0, LONGEST_S / 2)
    writes = [(0.0, numbers.choice(_SIZES))]
    return Script(writes, ends_at=ends_at, end=_end(numbers)), _reader(numbers)


def _download(numbers: random.Random) -> tuple[Script, Script]:
    ends_at = numbers.uniform(1.0, LONGEST_S / 3)
    return _reader(numbers, ends_at=ends_at, end=_end(numbers)), Script(endless=True)


def _dialogue(numbers: random.Random) -> tuple[Script, Script]:
    gap = numbers.choice((0.05, 0.5, 3.0))
    writes = [(gap * turn, numbers.choice((1, 100, 1500, 8000))) for turn in range(12)]
    return Script(writes, ends_at=gap * 14, end=_end(numbers)), Script(echoes=True)


def _both(numbers: random.Random) -> tuple[Script, Script]:
    one, other = ([(numbers.uniform(0, 2), numbers.choice(_SIZES))] for _ in range(2))
    ends_at = numbers.uniform(1.0, LONGEST_S / 2)
    return _reader(numbers, writes=one, ends_at=ends_at, end=_end(numbers)), Script(other)


def _restless(numbers: random.Random) -> tuple[Script, Script]:
    """Bursts, tiny or large, with silence between them."""
    at, writes = 0.0, []
    for _ in range(numbers.choice((3, 30, 200))):
        writes.append((at, numbers.choice((1, 10, 700, 5000, 40_000))))
        at += numbers.choice((0.001, 0.05, 0.3, 2.0, 8.0))
    return Script(writes, ends_at=min(at + 5.0, LONGEST_S), end=_end(numbers)), _reader(numbers)


# -- what a host claims ---------------------------------------------------------------------------


def statement(sysctls: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The conformance statement that a host's sysctls and a socket's options imply."""

    def on(name: str) -> bool:
        return sysctls[f"net.ipv4.{name}"] != "0"

    def bits(name: str, mask: int) -> bool:
        return bool(int(sysctls[f"net.ipv4.{name}"]) & mask)

    sack = on("tcp_sack")
    return {
        **dict.fromkeys(("sack", "sack_sender", "sack_receiver"), sack),
        "dsack": sack and on("tcp_dsack"),
        "timestamps": on("tcp_timestamps"),
        "window_scale": on("tcp_window_scaling"),
        "limited_transmit": True,
        "fast_retransmit": True,
        "newreno": True,
        # Current kernels detect losses by RACK whatever bit 0x1 says.
        "rack": sack,
        "tlp": sack and bits("tcp_early_retrans", 3),
        "prr": True,
        "frto": on("tcp_frto"),
        "ecn": on("tcp_ecn"),
        "byte_counting": "unlimited",
        "nagle": not options["nodelay"] or "cork" in options,
        "keep_alive": "keepalive" in options,
        "challenge_acks": True,
        "reset_at_held": sack,
        "congestion_control": options["congestion"],
        "pacing": _is_paced(options),
        "slow_start_by_delay": False,
        "finds_segment_size": sysctls.get("net.ipv4.tcp_mtu_probing", "0") != "0",
        # Hybla's grows with the round trip: 24 segments at 600 ms.
        "initial_window_segments": 24 if options["congestion"] == "hybla" else 10,
    }


def _is_paced(options: Mapping[str, Any]) -> bool:
    return options["congestion"] == "bbr" or "pacing_rate" in options


def reorders(link: LinkProfile) -> bool:
    """Whether packets may overtake one another."""
    return any(way.reorder_probability > 0 for way in (link.forward, link.return_))


def reads_slowly(script: Script) -> bool:
    """Whether a user leaves what has arrived unread for a while."""
    return script.pause > 0 or script.deaf[1] > 0


def settings(encounter: Encounter, meeting: Meeting, host: int) -> dict[str, Any]:
    """What was set at one end of a connection, ``peer.`` before what was set at the other."""
    both = all(each["net.ipv4.tcp_sack"] == "1" for each in encounter.sysctls)
    found: dict[str, Any] = {
        "link": "reorders" if reorders(encounter.link) else "in order",
        "sack": "on" if both else "off",
    }  # fmt: skip
    for end, prefix in ((host, ""), (1 - host, "peer.")):
        place = int(meeting.caller != end)
        script = meeting.scripts[place]
        own = {
            **{
                name.removeprefix("net.ipv4."): value
                for name, value in encounter.sysctls[end].items()
            },
            **meeting.options[place],
            "reads": "slowly" if reads_slowly(script) else "at once",
        }
        found |= {f"{prefix}{name}": value for name, value in own.items()}
    found["paced"] = _is_paced(meeting.options[int(meeting.caller != host)])
    found["buffer"] = "bounded" if _has_bounded_buffer(found) else "default"
    return found


def _has_bounded_buffer(found: Mapping[str, Any]) -> bool:
    """Whether a receive buffer may be short of room for the window that it offers."""
    return "receive" in found or found["tcp_rmem"] in _BOUNDED
