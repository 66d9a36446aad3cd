"""The configuration of an STP endpoint, with the values of STP/1 section 8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bentpipe_reference.common.encapsulation import OTHER_PROTOCOL, PROTOCOL, UDP

PathClass = Literal["geo", "leo", "vbdc"]
PATH_CLASSES: tuple[PathClass, ...] = ("geo", "leo", "vbdc")

EARLY_CREDIT = 4
"""SDs before the first BGAK (STP-CC-002), and the least credit of a BEGIN or BGAK (STP-CC-029)."""

LEAST_MAX_SD = 512
"""Octets that every endpoint accepts in one SD (STP-PF-009, STP-PF-010)."""

MOST_CREDIT = 1 << 23
"""SDs (STP-DT-005)."""

MAX_CC = 5
"""Transmissions of a BEGIN or END (STP-CC-016, STP-CC-026)."""

MOST_CALLS_ANEW = 5
"""Cookies for which one call begins anew (STP-CC-037)."""

COOKIE_LIFE_S, COOKIE_MEMORY_S = 600.0, 900.0
"""A cookie may open a connection, and is remembered when used, seconds (section 8)."""

NO_RESPONSE_S = 60.0
"""Until an unresponsive peer is given up, seconds (STP-PL-008)."""

KEEP_ALIVE_S, LEAST_KEEP_ALIVE_S, MOST_KEEP_ALIVE_S = 600.0, 15.0, 7200.0
"""Without a packet before an idle connection polls, and its bounds, seconds (STP-PL-010)."""

SD_OVERHEAD = STAT_OVERHEAD = 24
"""Octets of an SDP without data, an SD's being fewer, and of a STAT without list (section 3.1)."""

MSL_S = 120.0
"""Longest life of a packet, seconds (section 8)."""

_IP_OCTETS, _UDP_OCTETS = 20, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StpConfig:
    """Settings of one endpoint and all its connections. Times are seconds, sizes octets.

    Attributes:
        path_class: ``geo``, ``leo`` or ``vbdc``: the first waits of section 8.
        protocol: what carries the packets: 17 for UDP, or IP protocol 253 or 254.
        udp_port: this endpoint's UDP port, and a peer's where none is given.
        mtu: of the path, IP header included.
        max_sd: user data accepted in one SD, and sent at most; None for what the MTU allows.
        credit: the most SDs that the receiver holds for its user.
        send_buffer: the most octets written but not yet sent.
        send_window: the most SDs kept until they are acknowledged, whatever credit and congestion
            window permit. All senders together hold no more than ``max_connections`` times
            ``send_buffer`` and ``send_window`` SDs: 24 MB for each connection by default, which is
            enough for 316 Mb/s at 600 ms.
        initial_window: in SMSS (STP-CG-001).
        max_rate: bits per second of IP packets that carry data, None for no limit (STP-CG-009).
        fifo: the path preserves the order, so that a gap is reported at once (STP-DT-026).
        keep_alive: seconds without a packet before an idle connection polls (STP-PL-010).
        piggyback: send SDPs (STP-PL-005); otherwise every POLL is a packet of its own.
        max_stat: MaxSTAT, the most elements of a STAT's list, an odd number; so many have to fit
            into one packet (STP-PF-012).
        iss: number of the first SD of every connection, None for random ones.
        csn: the first CSN, None for a random one.
        max_connections: open at once; a further BEGIN is refused with reason 5.
        receive_memory: octets that all receivers together may promise to hold.
        used_cookies: cookies by which connections were opened that are remembered; a further BEGIN
            is refused with reason 5 (STP-CC-038).
        kept_cookies: addresses from which a few cookies are kept for later calls (STP-CC-040).
        answers_per_second: BGREJs of STP-CC-019, and as many ENDs of STP-CC-020.
    """

    path_class: PathClass = "geo"
    protocol: int = UDP
    udp_port: int = 7253
    mtu: int = 1500
    max_sd: int | None = None
    credit: int = 2048
    send_buffer: int = 1 << 18
    send_window: int = 1 << 14
    initial_window: int = 4
    max_rate: float | None = None
    fifo: bool = True
    keep_alive: float = KEEP_ALIVE_S
    piggyback: bool = True
    max_stat: int = 67
    iss: int | None = None
    csn: int | None = None
    max_connections: int = 4096
    receive_memory: int = 1 << 29
    used_cookies: int = 1 << 16
    kept_cookies: int = 4096
    answers_per_second: float = 10.0

    def __post_init__(self) -> None:
        """Refuse settings that would break the protocol.

        Raises:
            ValueError: a setting is out of its range; the message names it.
        """
        most_stat = (self.mtu - self.overhead - STAT_OVERHEAD) // 4
        checks = (
            ("path_class", self.path_class in PATH_CLASSES),
            ("protocol", self.protocol in (UDP, PROTOCOL, OTHER_PROTOCOL)),
            ("udp_port", 0 < self.udp_port < 1 << 16),
            ("mtu", 576 <= self.mtu < 1 << 16),
            ("max_sd", self.max_sd is None or LEAST_MAX_SD <= self.max_sd <= self._largest_sd),
            ("credit", EARLY_CREDIT <= self.credit <= MOST_CREDIT),
            ("send_buffer", self.send_buffer > 0),
            ("send_window", EARLY_CREDIT <= self.send_window <= MOST_CREDIT),
            ("initial_window", 1 <= self.initial_window <= 10),
            ("max_rate", self.max_rate is None or self.max_rate > 0),
            ("keep_alive", LEAST_KEEP_ALIVE_S <= self.keep_alive <= MOST_KEEP_ALIVE_S),
            ("max_stat", 3 <= self.max_stat <= most_stat and self.max_stat % 2 == 1),
            ("receive_memory", self.receive_memory >= EARLY_CREDIT * self.own_max_sd),
            ("used_cookies", self.used_cookies > 0),
            ("answers_per_second", self.answers_per_second >= 10),
        )
        for name, right in checks:
            if not right:
                raise ValueError(f"{name} cannot be {getattr(self, name)!r}")

    @property
    def overhead(self) -> int:
        """Octets of the headers below STP, IPv4 supposed."""
        return _IP_OCTETS + (_UDP_OCTETS if self.protocol == UDP else 0)

    @property
    def _largest_sd(self) -> int:
        return self.mtu - self.overhead - SD_OVERHEAD

    @property
    def own_max_sd(self) -> int:
        """The MaxSD announced (STP-PF-010, STP-PF-016)."""
        return self.max_sd or self._largest_sd

    @property
    def timer_cc(self) -> float:
        """First wait for BGAK or ENDAK."""
        return 3.0 if self.path_class == "vbdc" else 1.0

    @property
    def initial_interval(self) -> float:
        """Between POLLs while no round-trip time is known."""
        return 3.0 if self.path_class == "vbdc" else 1.0
