"""What a connection does with packets: the conditions and actions of the state table (section 9).

Each is a method of its own, named by a row of :data:`~bentpipe_reference.stp.states.CELLS`.
"""

# ruff: noqa: ARG002 - conditions and actions have one signature each

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.stp.config import (
    CHALLENGE_S,
    CONFIRMATION_S,
    EARLY_CREDIT,
    MAX_CC,
    StpConfig,
)
from bentpipe_reference.stp.events import Events, TraceSink, abort_text, refusal_text
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    VERSION,
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Reason,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.polling import Need
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK, newer
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.tracing import step_record
from bentpipe_reference.stp.without import WithoutConnection, endak_for

TAG_MASK = 0xFFFF
_PROOF_FACTOR = 3
"""Octets sent per octet received before the peer's address is proven (STP-SEC-001)."""

_FIXED_OCTETS = {
    Begin: 24, Bgak: 32, Bgrej: 20, End: 24, Endak: 16, Sd: 12, Sdp: 20, Poll: 20, Stat: 24,
    Ustat: 24,
}  # fmt: skip


def packet_octets(packet: Packet) -> int:
    """Octets of a packet that this endpoint sends."""
    octets = _FIXED_OCTETS[type(packet)]
    if isinstance(packet, Begin | Sd | Sdp):
        octets += len(packet.data)
    elif isinstance(packet, Stat):
        octets += 4 * len(packet.elements)
    return octets


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells connections apart (section 4).

    Attributes:
        peer: the peer's address, below STP.
        peer_port: its port.
        local_port: our port.
    """

    peer: tuple[Any, ...]
    peer_port: int
    local_port: int


class Procedures:
    """Variables of one connection and what packets do to them.

    Attributes:
        identity: whom it connects.
        state: see section 4.
        csn, iss: our numbers.
        peer_csn: the peer's, None while it is not known.
        outgoing: our stream.
        receiver: the peer's stream, None while its ISS is not known.
        proven: the peer's address has shown that it receives (STP-SEC-001).
        failure: why the connection failed, one clause; None if it did not.
        reason: the reason code that goes with it.
        succeeded: both streams are through and acknowledged (STP-CC-005).
        events: what the user has not been told yet.
        remembered: the endpoint has noted the peer's CSN (STP-CC-013).
    """

    def __init__(
        self,
        config: StpConfig,
        identity: Identity,
        csn: int,
        iss: int,
        without: WithoutConnection,
        trace: TraceSink | None = None,
    ) -> None:
        self.config = config
        self.identity = identity
        self.state = State.IDLE
        self.csn, self.iss = csn, iss
        self.peer_csn: int | None = None
        self.ports = (identity.local_port, identity.peer_port)
        self.tag = csn & TAG_MASK
        self.outgoing = (config.outgoing_class or Outgoing)(config, iss, self.ports, self.tag)
        self.receiver: Receiver | None = None
        self.proven = True
        self.failure: str | None = None
        self.reason = 0
        self.succeeded = False
        self.events = Events.NONE
        self.remembered = False
        self._without = without
        self._trace = trace
        if trace is not None:
            self.outgoing.on_step = self._note
        self._outbox: list[Packet] = []
        self._budget = 0
        self._early: dict[int, tuple[bytes, int]] = {}
        self._challenged_at = -math.inf
        self._confirm_until = math.inf
        self._release: End | None = None
        self._transmissions = 0
        self._timer_cc = math.inf

    # Sending

    def put(self, packet: Packet) -> None:
        """Send a packet, unless STP-SEC-001 forbids it."""
        if not self.proven:
            octets = packet_octets(packet)
            if not self.affords(octets):
                return
            self._budget -= octets
        self._outbox.append(packet)

    def affords(self, octets: int) -> bool:
        """STP-SEC-001: at most three times what came from an address not yet proven."""
        return self.proven or octets <= self._budget

    def arrived(self, octets: int) -> None:
        """So many octets came from the peer."""
        if not self.proven:
            self._budget += _PROOF_FACTOR * octets

    def bgak(self, flags: int) -> Bgak:
        """A BGAK with the CSNs of this connection."""
        receiver, peer_csn = self.receiver, self.peer_csn
        assert receiver is not None and peer_csn is not None
        return self._bgak(flags, peer_csn, receiver.vr_mr, receiver.vr_r)

    def _bgak(self, flags: int, peer_csn: int, n_mr: int, n_r: int) -> Bgak:
        return Bgak(
            *self.ports, self.tag, flags, self.iss & PACKET_MASK, n_mr & PACKET_MASK, self.csn,
            peer_csn, n_r & PACKET_MASK, self.config.own_max_sd,
        )  # fmt: skip

    def end(self, flags: int, reason: Reason, peer_csn: int | None = None) -> End:
        """An END of this connection; N(R) is VR(R), just above the peer's FIN once complete."""
        n_r = 0 if self.receiver is None else self.receiver.vr_r & PACKET_MASK
        other = self.peer_csn if peer_csn is None else peer_csn
        return End(*self.ports, self.tag, flags, n_r, reason, self.csn, other or 0)

    # Beginning and end

    def take_call(self, begin: Begin, octets: int, now: float, *, confirmed: bool) -> None:
        """Section 5.2: a BEGIN of so many octets; open at once, or wait for confirmation."""
        self.proven = False
        self.arrived(octets)
        self.peer_csn = begin.csn
        self._learn_peer(begin.iss, begin.max_sd)
        self.outgoing.sender.grant(self.iss + begin.n_mr & PACKET_MASK, self.iss)
        if begin.data or begin.flags & Flags.FIN:
            self._early[begin.iss] = (begin.data, begin.flags & Flags.FIN)
        if confirmed:
            self.state = State.READY
            self._accepted(now)
            self.put(self.bgak(0))
        else:
            self.state = State.INCOMING
            self._confirm_until = now + self.confirmation_time()
            self.put(self.bgak(Flags.C))

    def confirmation_time(self) -> float:
        """STP-SEC-002."""
        return CONFIRMATION_S

    def _learn_peer(self, iss: int, max_sd: int | None) -> None:
        self.receiver = (self.config.receiver_class or Receiver)(self.config, iss)
        self.outgoing.learn(max_sd)

    def _accepted(self, now: float) -> None:
        """The connection is open for the one who was called: hand over what is held."""
        self._confirm_until = math.inf
        self.events |= Events.ACCEPTED
        assert self.receiver is not None
        iss = self.receiver.iss
        for number in sorted(self._early, key=lambda number: number - iss & PACKET_MASK):
            self._receive_sd(number, *self._early[number], now)
        self._early = {}

    def fail(self, text: str, reason: int) -> None:
        """STP-CC-006: the connection is over, and not as it should be."""
        if self.failure is None and not self.succeeded:
            self.failure, self.reason = text, reason
            self.events |= Events.FAILED
        self._over()

    def succeed(self) -> None:
        """STP-CC-005: both streams are through and acknowledged."""
        if self.failure is None and not self.succeeded:
            self.succeeded = True
            self.events |= Events.ENDED
        self._over()

    def _over(self) -> None:
        self.outgoing.sender.drop()
        self._early = {}

    def send_end(self, end: End, now: float) -> None:
        """Sections 5.5 and 7.2: send an END and wait for its acknowledgment."""
        self.state = State.OUTGOING_RELEASE
        self._release = end
        self._transmissions = 0
        self.repeat_end(now)

    def repeat_end(self, now: float) -> None:
        """STP-CC-026: Timer_CC doubles, MaxCC transmissions."""
        assert self._release is not None
        if self._transmissions >= self.max_cc():
            self.state = State.IDLE
            return
        self.put(self._release)
        self._arm_timer_cc(now)

    def max_cc(self) -> int:
        """MaxCC."""
        return MAX_CC

    def _arm_timer_cc(self, now: float) -> None:
        self._timer_cc = now + self.timer_cc(self._transmissions)
        self._transmissions += 1

    def timer_cc(self, transmissions: int) -> float:
        """STP-CC-016: the wait after so many transmissions before this one."""
        return self.config.timer_cc * 2.0**transmissions

    # Conditions

    def is_other_version(self, begin: Begin) -> bool:
        """STP-CC-019."""
        return begin.version != VERSION

    def is_for_us(self, packet: Bgak | Bgrej | Endak) -> bool:
        """Our CSN as that of the recipient."""
        return packet.peer_csn == self.csn

    def is_for_us_and_asks(self, bgak: Bgak) -> bool:
        """The same, and confirmation is asked for."""
        return self.is_for_us(bgak) and bool(bgak.flags & Flags.C)

    def is_of_peer(self, begin: Begin) -> bool:
        """STP-CC-015: the BEGIN of this connection."""
        return begin.csn == self.peer_csn

    def is_newer_begin(self, begin: Begin) -> bool:
        """A later call of the same peer."""
        return self.peer_csn is not None and newer(begin.csn, self.peer_csn)

    def has_both_csns(self, packet: Bgak | End) -> bool:
        """STP-CC-003: the peer has returned our CSN."""
        return packet.peer_csn == self.csn and packet.csn == self.peer_csn

    def has_both_csns_and_asks(self, bgak: Bgak) -> bool:
        """STP-CC-017."""
        return self.has_both_csns(bgak) and bool(bgak.flags & Flags.C)

    def is_other_incarnation(self, bgak: Bgak) -> bool:
        """STP-CC-007."""
        if self.peer_csn is None or not self.is_for_us(bgak):
            return False
        return newer(bgak.csn, self.peer_csn)

    def is_valid_end(self, end: End) -> bool:
        """STP-CC-021, section 5.6: an END without R flag that knows the connection."""
        if end.flags & Flags.R:
            return False
        if self.peer_csn is None:  # state 2, or state 4 after an abort in it
            return end.peer_csn == self.csn
        zero_will_do = self.state is State.INCOMING and end.peer_csn == 0
        return end.csn == self.peer_csn and (end.peer_csn == self.csn or zero_will_do)

    def is_valid_reflected_end(self, end: End) -> bool:
        """Section 5.6: the peer says, with both CSNs, that it does not know the connection."""
        return bool(end.flags & Flags.R) and self.has_both_csns(end)

    def is_hint(self, end: End) -> bool:
        """Section 5.6: only the tag is known."""
        return bool(end.flags & Flags.R) and end.csn == 0 and end.peer_csn == self.tag

    def is_valid_abort(self, end: End) -> bool:
        """An END with A flag."""
        return self.is_valid_end(end) and bool(end.flags & Flags.A)

    def is_valid_completing_end(self, end: End) -> bool:
        """STP-CC-025, STP-CC-027: it covers our FIN, and we have delivered the peer's."""
        return self.is_valid_end(end) and self.covers_fin(end.n_r) and self.peer_is_finished()

    def covers_fin(self, n_r: int) -> bool:
        """Whether our FIN is below N(R)."""
        sender = self.outgoing.sender
        if sender.fin_number is None:
            return False
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        return sender.fin_number < number <= sender.vt_s

    def peer_is_finished(self) -> bool:
        """Whether the peer's FIN has been delivered."""
        return self.receiver is not None and self.receiver.finished

    # Actions

    def discard(self, packet: Packet, now: float) -> None:
        """Nothing."""

    def refuse_version(self, begin: Begin, now: float) -> None:
        """STP-CC-019."""
        self._without.refuse_version(begin, self.identity.peer, now)

    def answer_stray_bgak(self, bgak: Bgak, now: float) -> None:
        """STP-CC-020."""
        self._without.answer_unknown(bgak, self.identity.peer, now)

    def answer_crossing_begin(self, begin: Begin, now: float) -> None:
        """Section 5.2: both endpoints call at once; nothing of the BEGIN is taken yet."""
        self.put(self._bgak(Flags.C, begin.csn, begin.iss + self.config.credit, begin.iss))

    def open(self, bgak: Bgak, now: float) -> None:
        """Section 5.1: the call is accepted."""
        self.peer_csn = bgak.csn
        self._timer_cc = math.inf
        self._learn_peer(bgak.iss, bgak.max_sd)
        outgoing = self.outgoing
        outgoing.learn_credit(bgak.n_mr, bgak.n_r)
        outgoing.polling.require(Need.NONE, now)  # what waited until now was no silence
        self.state = State.READY
        self.events |= Events.OPENED
        sender = outgoing.sender
        asked = bool(bgak.flags & Flags.C)
        # Who asked had to hold early SDs back and has answered no POLL; then only a new one helps.
        if asked and not sender.unacknowledged and not sender.has_new:
            # Without a POLL the peer would never learn that its question was lost.
            sender.send_empty()
        outgoing.asks_at_once = sender.unacknowledged and (asked or sender.vt_pd > 0)

    def open_and_confirm(self, bgak: Bgak, now: float) -> None:
        """STP-CC-017: the same, and the peer wants its CSN back."""
        self.open(bgak, now)
        self.put(self.bgak(0))

    def be_refused(self, bgrej: Bgrej, now: float) -> None:
        """The call has failed."""
        self.fail(refusal_text(bgrej.reason), bgrej.reason)

    def be_confirmed(self, bgak: Bgak, now: float) -> None:
        """STP-CC-003: hand over what is held."""
        self.state = State.READY
        # The BGAK may tell of more credit than the BEGIN.
        self.outgoing.learn_credit(bgak.n_mr, bgak.n_r)
        self._accepted(now)
        if bgak.flags & Flags.C:
            self.put(self.bgak(0))

    def ask_again(self, packet: Packet, now: float) -> None:
        """STP-CC-015: the question was lost, or what answers it."""
        self.put(self.bgak(Flags.C))

    def hold(self, sd: Sd | Sdp, now: float) -> None:
        """STP-CC-003: keep an early SD for the moment of confirmation."""
        assert self.receiver is not None
        if sd.n_s - self.receiver.iss & PACKET_MASK < EARLY_CREDIT:
            self._early.setdefault(sd.n_s, (sd.data, sd.flags & Flags.FIN))

    def hold_and_ask_again(self, sdp: Sdp, now: float) -> None:
        """An SDP in state 3."""
        self.hold(sdp, now)
        self.ask_again(sdp, now)

    def forget(self, packet: Packet, now: float) -> None:
        """The connection is no more."""
        self._over()
        self.state = State.IDLE

    def acknowledge_and_forget(self, end: End, now: float) -> None:
        """STP-CC-022."""
        self.put(endak_for(end))
        self.forget(end, now)

    def answer_begin_again(self, begin: Begin, now: float) -> None:
        """STP-CC-015: nothing else changes."""
        self.put(self.bgak(0))

    def challenge(self, packet: Begin | End, now: float) -> None:
        """STP-CC-018, STP-CC-021: "have you still got this connection?", once per second."""
        if now - self._challenged_at >= self.challenge_interval():
            self._challenged_at = now
            self.put(self.bgak(Flags.C))

    def challenge_interval(self) -> float:
        """Seconds between challenges."""
        return CHALLENGE_S

    def confirm(self, bgak: Bgak, now: float) -> None:
        """STP-CC-017."""
        self.put(self.bgak(0))

    def disown_other_incarnation(self, bgak: Bgak, now: float) -> None:
        """STP-CC-007: the peer has lost this connection and begun another."""
        self.put(self.end(Flags.A, Reason.NO_CONNECTION, bgak.csn))
        self.fail("the peer answered with another connection number", Reason.NO_CONNECTION)

    def be_disowned(self, end: End, now: float) -> None:
        """The peer knows no such connection."""
        self.fail(abort_text(Reason.NO_CONNECTION), Reason.NO_CONNECTION)

    def be_aborted(self, end: End, now: float) -> None:
        """STP-CC-006, STP-CC-022, STP-CC-027."""
        self.put(endak_for(end))
        self.fail(abort_text(end.reason), end.reason)

    def be_released(self, end: End, now: float) -> None:
        """STP-CC-022, STP-CC-025: the peer is complete, and so are we."""
        self.put(endak_for(end))
        self.succeed()

    def take_sd(self, sd: Sd, now: float) -> None:
        """Section 6.2."""
        self._receive_sd(sd.n_s, sd.data, sd.flags & Flags.FIN, now)

    def take_sdp(self, sdp: Sdp, now: float) -> None:
        """STP-DT-018: first the SD, then the POLL."""
        self._receive_sd(sdp.n_s, sdp.data, sdp.flags & Flags.FIN, now)
        self._answer(sdp.n_s + 1 & PACKET_MASK, sdp.n_ps, sdp.timestamp, now)

    def answer_poll(self, poll: Poll, now: float) -> None:
        """STP-DT-017: at once."""
        self._answer(poll.n_s, poll.n_ps, poll.timestamp, now)

    def take_stat(self, stat: Stat, now: float) -> None:
        """Section 6.4."""
        if self.outgoing.on_stat(stat, now):
            self.proven = True

    def take_ustat(self, ustat: Ustat, now: float) -> None:
        """Section 6.5."""
        self.outgoing.on_ustat(ustat, now)

    def _receive_sd(self, field: int, data: bytes, fin: int, now: float) -> None:
        receiver = self.receiver
        assert receiver is not None
        before = receiver.vr_r
        gap = receiver.on_sd(field, data, fin)
        if gap is not None:
            if self.config.fifo:
                self.send_ustat(gap, now)
            else:
                receiver.hold_back(gap, now + self.ustat_delay())
        if receiver.vr_r != before:
            self.events |= Events.READABLE if receiver.readable else Events.NONE
            if receiver.finished:
                self.events |= Events.END_OF_STREAM
        if not self.config.fifo:
            self._send_due_ustats(now)
        if self._trace is not None:
            self._note("sd", now, {"n": field, "gap": list(gap) if gap else None})

    def ustat_delay(self) -> float:
        """STP-DT-026: an eighth of the round-trip time; of 0.6 s while it is not known."""
        return (self.outgoing.rtt.srtt or 0.6) / 8

    def _send_due_ustats(self, now: float) -> None:
        assert self.receiver is not None
        for run in self.receiver.due_ustats(now):
            self.send_ustat(run, now)

    def send_ustat(self, run: Run, now: float) -> None:
        """STP-DT-001: one run in one USTAT."""
        receiver = self.receiver
        assert receiver is not None
        receiver.reported()
        first, end = run
        self.put(
            Ustat(
                *self.ports, self.tag, 0, receiver.vr_r & PACKET_MASK,
                receiver.vr_mr & PACKET_MASK, (first & PACKET_MASK, end & PACKET_MASK),
            )
        )  # fmt: skip

    def _answer(self, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        assert self.receiver is not None
        self._send_stats(self.receiver.on_poll(n_s, n_ps, timestamp), n_ps, timestamp)
        if self._trace is not None:
            self._note("poll_arrives", now, {"n_s": n_s, "n_ps": n_ps})

    def _send_stats(self, lists: list[tuple[int, ...]], n_ps: int, timestamp: int) -> None:
        receiver = self.receiver
        assert receiver is not None
        for elements in lists:
            self.put(
                Stat(
                    *self.ports, self.tag, 0, receiver.vr_r & PACKET_MASK,
                    receiver.vr_mr & PACKET_MASK, n_ps, timestamp, elements,
                )
            )  # fmt: skip

    def _note(self, name: str, now: float, values: dict[str, Any]) -> None:
        if self._trace is not None:
            self._trace(step_record(self, name, now, values))
