"""The sender's variables and the quantities derived from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.common.stream import Source
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.scoreboard import Scoreboard


@dataclass(slots=True)
class Ack:
    """The acknowledgment part of one acceptable segment, numbers unwrapped.

    Attributes:
        number: the acknowledgment number.
        window: offered window, octets (scaled).
        seq: sequence number of the segment that carries it.
        blocks: SACK blocks in wire order.
        ts_ecr_age: seconds since the echoed timestamp was sent, None without one.
        bare: the segment carries neither data nor SYN nor FIN.
    """

    number: int
    window: int
    seq: int
    blocks: tuple[tuple[int, int], ...]
    ts_ecr_age: float | None
    bare: bool


@dataclass(frozen=True, slots=True)
class Event:
    """A protocol event, for traces.

    Attributes:
        name: of the event, for example ``send``, ``retransmit``, ``ack``, ``enter_recovery``.
        time: seconds on the caller's clock.
        values: what describes it.
    """

    name: str
    time: float
    values: dict[str, int | float | str | bool | None]


EventSink = Callable[[Event], None]


Put = Callable[[int, bytes, bool, float], None]
"""Sends a payload at an unwrapped sequence number, with FIN or without, at a time."""


@dataclass(slots=True)
class SenderCounters:
    """Running totals of one sender."""

    retransmissions: int = 0
    timeouts: int = 0
    fast_recoveries: int = 0


class SenderVariables:
    """State of the sending direction; sequence numbers are unwrapped, windows in octets.

    Attributes:
        iss: initial send sequence number.
        smss: sender maximum segment size, data octets without options.
        snd_una: oldest unacknowledged sequence number.
        snd_nxt: next sequence number to send; below ``snd_max`` after a timeout.
        snd_max: one past the highest sequence number sent.
        snd_wnd: window the peer offers.
        cwnd: congestion window.
        ssthresh: slow start threshold.
        dupacks: duplicate ACKs in a row.
        recover: see the variant; the end of the loss episode being repaired.
        in_recovery: whether fast recovery is in progress.
        sack_ok: whether SACK was negotiated.
        scoreboard: what the peer selectively acknowledged.
        source: where the octets come from, None until the application attaches one.
        fin_queued: whether the application has closed the stream.
        estimator: the round-trip time and the retransmission timeout.
        limited_transmit_octets: what limited transmit sent since the last ACK of new data.
        octets_acked: acknowledged octets that congestion avoidance has not used yet.
        rto_deadline: when the retransmission timer expires, None while it is off.
        persist_deadline: when the next window probe is due, None while none is planned.
        consecutive_timeouts: timeouts since the peer last acknowledged new data.
        silent_timeouts: timeouts and probes since the peer last acknowledged anything.
        probes: window probes since the peer last acknowledged new data.
        last_send: when a segment was last sent, None before the first.
        timed: end of the segment whose round trip is being measured, and when it was sent.
    """

    def __init__(self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator) -> None:
        self.config = config
        self.put = put
        self.iss = iss
        self.smss: int
        self.snd_una = self.snd_nxt = self.snd_max = iss + 1
        self.snd_wnd: int
        self.max_snd_wnd: int
        self.snd_wl1: int
        self.snd_wl2: int
        self.cwnd: int
        self.ssthresh = 1 << 30
        self.dupacks = 0
        self.recover = self.initial_recover()
        self.in_recovery = False
        self.sack_ok = False
        self.scoreboard = Scoreboard()
        self.source: Source | None = None
        self.fin_queued = False
        self.estimator = estimator
        self.limited_transmit_octets = 0
        self.octets_acked = 0
        self.rto_deadline: float | None = None
        self.persist_deadline: float | None = None
        self.consecutive_timeouts = 0
        self.silent_timeouts = 0
        self.probes = 0
        self.last_send: float | None = None
        self.timed: tuple[int, float] | None = None
        self.counters = SenderCounters()
        self.on_event: EventSink | None = None

    def initial_recover(self) -> int:
        """``recover`` before the first loss episode."""
        return self.iss

    @property
    def flight_size(self) -> int:
        """Octets sent and not cumulatively acknowledged (RFC 5681 section 2)."""
        return self.snd_max - self.snd_una

    @property
    def right_edge(self) -> int:
        """One past the last sequence number the peer's window allows."""
        return self.snd_una + self.snd_wnd

    @property
    def data_end(self) -> int | None:
        """One past the last data octet available, None when the source has no end."""
        if self.source is None:
            return self.iss + 1
        end = self.source.end()
        return None if end is None else self.iss + 1 + end

    @property
    def sending_end(self) -> int | None:
        """One past the last sequence number that could be sent, FIN included."""
        end = self.data_end
        return None if end is None else end + self.fin_queued

    @property
    def fin_acknowledged(self) -> bool:
        """Whether the peer has acknowledged the FIN."""
        return self.fin_queued and self.data_end is not None and self.snd_una > self.data_end

    def emit(self, name: str, now: float, **values: int | float | str | bool | None) -> None:
        """Report an event with the congestion variables, if there is an event sink."""
        if self.on_event is not None:
            values.update(
                snd_una=self.snd_una - self.iss,
                snd_nxt=self.snd_nxt - self.iss,
                snd_max=self.snd_max - self.iss,
                cwnd=self.cwnd,
                ssthresh=self.ssthresh,
                recover=self.recover - self.iss,
                in_recovery=self.in_recovery,
                dupacks=self.dupacks,
            )
            self.on_event(Event(name, now, values))
