"""The actions of the state table (STP/1 section 9), and the procedures of which they are made.

Each is a function of a connection's variables, which it changes; packets go into the outbox.
"""

# ruff: noqa: ARG002 - actions have one signature

from __future__ import annotations

import math
from dataclasses import replace

from bentpipe_reference.stp import config, packets
from bentpipe_reference.stp.events import Events, abort_text, refusal_text
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle, endak_for
from bentpipe_reference.stp.packets import Begin, Bgak, End, Flags, Packet, Reason, Sd, Sdp
from bentpipe_reference.stp.polling import Need
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import TAGGED, State
from bentpipe_reference.stp.tracing import note, note_packet
from bentpipe_reference.stp.variables import Variables

_A, _C, _FIN = int(Flags.A), int(Flags.C), int(Flags.FIN)

_PROOF_FACTOR = 3
"""Octets sent per octet received before the peer's address is proven (STP-SEC-001)."""


class Actions:
    """The actions; one object serves all connections of an endpoint.

    Args:
        guards: the conditions.
        idle: answers what the state idle answers.
        receiver: the class of the receiving side.
    """

    confirmation_s: float = config.CONFIRMATION_S
    proof_patience_s: float = config.NO_RESPONSE_S

    def __init__(self, guards: Guards, idle: Idle, receiver: type[Receiver]) -> None:
        self.guards = guards
        self.idle = idle
        self._receiver = receiver

    # Sending

    def put(self, v: Variables, packet: Packet) -> None:
        """Send a packet, unless STP-SEC-001 forbids it."""
        if not v.proven:
            octets = packets.size_of(packet)
            if not self.affords(v, octets):
                return
            v.budget -= octets
        v.outbox.append(packet)
        if v.trace is not None and packet.type not in TAGGED:
            v.untold.append(packet)

    def affords(self, v: Variables, octets: int) -> bool:
        """STP-SEC-001: at most three times what came from an address not yet proven."""
        return v.proven or octets <= v.budget

    def arrived(self, v: Variables, octets: int) -> None:
        """Add ``octets`` received from the peer to the budget."""
        if not v.proven:
            v.budget += _PROOF_FACTOR * octets

    def bgak(self, v: Variables, flags: int) -> Bgak:
        """A BGAK with the CSNs of this connection."""
        assert v.peer_csn is not None
        return self.bgak_of(v, flags, v.peer_csn, v.incoming.vr_mr, v.incoming.vr_r)

    def bgak_of(self, v: Variables, flags: int, peer_csn: int, n_mr: int, n_r: int) -> Bgak:
        """A BGAK with given numbers."""
        return Bgak(
            *v.header, flags, v.iss & PACKET_MASK, n_mr & PACKET_MASK, v.csn, peer_csn,
            n_r & PACKET_MASK, v.config.own_max_sd,
        )  # fmt: skip

    def end(self, v: Variables, flags: int, reason: Reason, peer_csn: int | None = None) -> End:
        """An END of this connection; N(R) is VR(R), just above the peer's FIN once complete."""
        n_r = 0 if v.receiver is None else v.receiver.vr_r & PACKET_MASK
        other = v.peer_csn if peer_csn is None else peer_csn
        return End(*v.header, flags, n_r, reason, v.csn, other or 0)

    # Opening

    def take_call(
        self, v: Variables, begin: Begin, octets: int, now: float, *, confirmed: bool
    ) -> None:
        """Section 5.2: a BEGIN in a packet of ``octets``; open at once or await confirmation."""
        v.handled = begin
        v.proven = False
        v.was_called = True
        self.arrived(v, octets)
        v.peer_csn = begin.csn
        self._learn_peer(v, begin.iss, begin.max_sd)
        v.outgoing.sender.grant(v.iss + begin.n_mr & PACKET_MASK, v.iss)
        if begin.data or begin.flags & _FIN:
            v.early[begin.iss] = (begin.data, begin.flags & _FIN)
        if confirmed:
            v.state = State.READY
            self._accepted(v, now)
            self.put(v, self.bgak(v, 0))
        else:
            v.state = State.INCOMING
            v.asked_at = now
            v.confirm_until = now + self.confirmation_s
            self.put(v, self.bgak(v, _C))
        note_packet(v, "called", now, begin, "")

    def _learn_peer(self, v: Variables, iss: int, max_sd: int | None) -> None:
        v.receiver = self._receiver(v.config, iss)
        v.outgoing.learn(max_sd)

    def _accepted(self, v: Variables, now: float) -> None:
        """The called endpoint has opened the connection: deliver what is held."""
        v.confirm_until = math.inf
        v.events |= Events.ACCEPTED
        iss = v.incoming.iss
        for number in sorted(v.early, key=lambda number: number - iss & PACKET_MASK):
            self.receive_sd(v, number, *v.early[number], now)
        v.early = {}

    def send_first_begin(self, v: Variables, now: float) -> None:
        """STP-CC-014: with the first data of our stream; a repetition is the same packet."""
        sender = v.outgoing.sender
        data, fin = b"", 0
        if sender.has_new:
            entry = sender.take_new()
            data, fin = entry.data, entry.fin
        v.begin = Begin(
            *v.header, fin, v.iss & PACKET_MASK, v.config.credit, v.csn,
            max_sd=v.config.own_max_sd, data=data,
        )  # fmt: skip
        self.repeat_begin(v, now)

    def repeat_begin(self, v: Variables, now: float) -> None:
        """STP-CC-016."""
        assert v.begin is not None
        if v.transmissions >= self.max_cc(v):
            self.fail(v, "the peer does not answer", Reason.NO_ANSWER, now)
            v.state = State.IDLE
            return
        self.put(v, v.begin)
        v.asked_at = now if v.transmissions == 0 else None
        self._arm_timer_cc(v, now)
        note(v, "begin", now, {"first": v.transmissions == 1})

    def max_cc(self, v: Variables) -> int:
        """MaxCC."""
        return config.MAX_CC

    def _arm_timer_cc(self, v: Variables, now: float) -> None:
        v.timer_cc = now + self.wait_cc(v, v.transmissions)
        v.transmissions += 1

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        """STP-CC-016: the value of Timer_CC after ``transmissions`` earlier ones, seconds."""
        return v.config.timer_cc * 2.0**transmissions

    # Ending

    def fail(self, v: Variables, text: str, reason: int, now: float | None = None) -> None:
        """STP-CC-006: the connection ends in failure."""
        if not v.is_over:
            v.failure, v.reason = text, reason
            v.events |= Events.FAILED
            note(v, "outcome", now, {"result": "failure", "reason": int(reason)})
        self.drop_data(v)

    def succeed(self, v: Variables, now: float | None = None) -> None:
        """STP-CC-005: both streams are complete and acknowledged."""
        if not v.is_over:
            v.succeeded = True
            v.events |= Events.ENDED
            note(v, "outcome", now, {"result": "success", "reason": 0})
        self.drop_data(v)

    def drop_data(self, v: Variables) -> None:
        """Forget what is still to be sent or held."""
        v.outgoing.sender.drop()
        v.early = {}

    def send_end(self, v: Variables, end: End, now: float) -> None:
        """Sections 5.5 and 7.2: send an END and wait for its acknowledgment."""
        v.state = State.OUTGOING_RELEASE
        v.release = end
        v.transmissions = 0
        self.repeat_end(v, now)

    def repeat_end(self, v: Variables, now: float) -> None:
        """STP-CC-026: Timer_CC doubles, MaxCC transmissions."""
        assert v.release is not None
        if v.transmissions >= self.max_cc(v):
            v.state = State.IDLE
            return
        self.put(v, v.release)
        self._arm_timer_cc(v, now)

    def abort(self, v: Variables, text: str, reason: Reason, now: float) -> None:
        """Section 5.5: send an END with A flag, and fail."""
        self.send_end(v, self.end(v, _A, reason), now)
        note(v, "release", now, {})
        self.fail(v, text, reason, now)

    def release(self, v: Variables, now: float) -> None:
        """Section 5.5: send the END of a complete connection."""
        self.send_end(v, self.end(v, 0, Reason.NONE), now)
        note(v, "release", now, {})

    def release_if_complete(self, v: Variables, now: float) -> None:
        """STP-CC-025, STP-CC-031: our FIN is acknowledged, and the peer's delivered."""
        if not self.guards.is_complete(v):
            return
        if self.guards.awaits_release(v):
            v.release_at = now + self.release_wait(v)
        else:
            self.release(v, now)
        self.succeed(v, now)

    def release_wait(self, v: Variables) -> float:
        """STP-CC-031: how long the caller's END is awaited, seconds."""
        return max(v.config.timer_cc, v.outgoing.polling.silence_time())

    # Actions on any packet

    def discard(self, v: Variables, packet: Packet, now: float) -> None:
        """Do nothing."""

    def forget(self, v: Variables, packet: Packet, now: float) -> None:
        """The connection no longer exists."""
        self.drop_data(v)
        v.state = State.IDLE

    def ask_again(self, v: Variables, packet: Packet, now: float) -> None:
        """STP-CC-015: the question, or its answer, was lost."""
        v.asked_at = None
        self.put(v, self.bgak(v, _C))

    def challenge(self, v: Variables, packet: Begin | End, now: float) -> None:
        """STP-CC-018, STP-CC-021: ask whether the peer still has the connection, once a second."""
        if now - v.challenged_at >= config.CHALLENGE_S:
            v.challenged_at = now
            self.put(v, self.bgak(v, _C))

    # BEGIN

    def refuse_version(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-019."""
        self.idle.refuse_version(Arrival(v.identity.peer, 0, now), begin)

    def answer_crossing_begin(self, v: Variables, begin: Begin, now: float) -> None:
        """Section 5.2: both endpoints call at once; nothing is taken from the BEGIN yet."""
        self.put(v, self.bgak_of(v, _C, begin.csn, begin.iss + v.config.credit, begin.iss))

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-015: nothing else changes."""
        self.put(v, self.bgak(v, 0))

    def let_another_wait(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-033: this connection stays pending beside that of the BEGIN."""

    # BGAK, BGREJ

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        """Section 5.1: the call is accepted."""
        v.peer_csn = bgak.csn
        v.timer_cc = math.inf
        self._learn_peer(v, bgak.iss, bgak.max_sd)
        outgoing = v.outgoing
        outgoing.learn_credit(bgak.n_mr, bgak.n_r)
        outgoing.polling.require(Need.NONE, now)  # the wait until now was no silence
        v.state = State.READY
        v.events |= Events.OPENED
        self._measure(v, now)
        sender = outgoing.sender
        outgoing.unheard = self.guards.must_be_heard(v, bgak)
        if self.guards.must_prove(v, bgak):
            v.proof = Proof(v.config.timer_cc, v.transmissions, self.proof_patience_s, now)
        # A peer that asks for confirmation has answered no POLL so far, so a new one is due.
        lost_touch = sender.unacknowledged and sender.vt_pd > 0
        asked = bool(bgak.flags & _C)
        outgoing.asks_at_once = (asked and outgoing.unheard) or lost_touch

    def _measure(self, v: Variables, now: float) -> None:
        """STP-PL-009: a BGAK is a measurement if the packet it answers was sent once."""
        if v.asked_at is not None:
            v.outgoing.rtt.sample(now - v.asked_at)
        v.asked_at = None

    def open_and_confirm(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-017: the same, and the peer wants its CSN returned."""
        self.open(v, bgak, now)
        self.put(v, self.bgak(v, 0))

    def be_confirmed(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-003: deliver what is held."""
        v.state = State.READY
        v.outgoing.learn_credit(bgak.n_mr, bgak.n_r)  # perhaps more than in the BEGIN
        self._measure(v, now)
        self._accepted(v, now)
        if bgak.flags & _C:
            self.put(v, self.bgak(v, 0))

    def confirm(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-017."""
        self.put(v, self.bgak(v, 0))

    def answer_stray_bgak(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-020."""
        self.idle.answer_unknown(Arrival(v.identity.peer, 0, now), bgak)

    def disown_other_incarnation(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-007: the peer has lost this connection and begun another."""
        self.put(v, self.end(v, _A, Reason.NO_CONNECTION, bgak.csn))
        self.fail(v, "the peer answered with another number", Reason.NO_CONNECTION, now)

    def end_again_to_the_peer(self, v: Variables, bgak: Bgak, now: float) -> None:
        """Section 5.5: the END of an abort in state 2 could not name the peer's CSN."""
        assert v.release is not None
        v.peer_csn = bgak.csn
        v.release = replace(v.release, peer_csn=bgak.csn)
        self.put(v, v.release)

    def be_refused(self, v: Variables, bgrej: packets.Bgrej, now: float) -> None:
        """The call has failed."""
        self.fail(v, refusal_text(bgrej.reason), bgrej.reason, now)

    # END

    def acknowledge_and_forget(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-022."""
        self.put(v, endak_for(end))
        self.forget(v, end, now)

    def be_disowned(self, v: Variables, end: End, now: float) -> None:
        """The peer does not know the connection."""
        self.fail(v, abort_text(Reason.NO_CONNECTION), Reason.NO_CONNECTION, now)

    def be_aborted(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-006, STP-CC-022, STP-CC-027."""
        self.put(v, endak_for(end))
        self.fail(v, abort_text(end.reason), end.reason, now)

    def be_released(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-022, section 5.5: both endpoints are complete."""
        self.put(v, endak_for(end))
        self.succeed(v, now)

    # Data and reports

    def hold(self, v: Variables, sd: Sd | Sdp, now: float) -> None:
        """STP-CC-003: keep an early SD until the confirmation."""
        if sd.n_s - v.incoming.iss & PACKET_MASK < config.EARLY_CREDIT:
            v.early.setdefault(sd.n_s, (sd.data, sd.flags & _FIN))

    def hold_and_ask_again(self, v: Variables, sdp: Sdp, now: float) -> None:
        """An SDP in state 3."""
        self.hold(v, sdp, now)
        self.ask_again(v, sdp, now)

    def take_sd(self, v: Variables, sd: Sd, now: float) -> None:
        """Section 6.2."""
        self.receive_sd(v, sd.n_s, sd.data, sd.flags & _FIN, now)

    def take_sdp(self, v: Variables, sdp: Sdp, now: float) -> None:
        """STP-DT-018: first the SD, then the POLL."""
        self.receive_sd(v, sdp.n_s, sdp.data, sdp.flags & _FIN, now)
        self._answer(v, sdp.n_s + 1 & PACKET_MASK, sdp.n_ps, sdp.timestamp, now)

    def answer_poll(self, v: Variables, poll: packets.Poll, now: float) -> None:
        """STP-DT-017: at once."""
        self._answer(v, poll.n_s, poll.n_ps, poll.timestamp, now)

    def take_stat(self, v: Variables, stat: packets.Stat, now: float) -> None:
        """Section 6.4."""
        if v.outgoing.on_stat(stat, now):
            v.proven = True

    def take_ustat(self, v: Variables, ustat: packets.Ustat, now: float) -> None:
        """Section 6.5."""
        v.outgoing.on_ustat(ustat, now)

    def receive_sd(self, v: Variables, field: int, data: bytes, fin: int, now: float) -> None:
        """Section 6.2: take the SD numbered ``field``, and report a gap before it."""
        receiver = v.incoming
        v.outgoing.unheard = False
        before = receiver.vr_r
        gap = receiver.on_sd(field, data, fin)
        if gap is not None:
            if v.config.fifo:
                self._send_ustat(v, gap)
            else:  # STP-DT-026: an eighth of the round-trip time; of 0.6 s while it is unknown
                receiver.hold_back(gap, now + (v.outgoing.rtt.srtt or 0.6) / 8)
        if receiver.vr_r != before:
            v.events |= Events.READABLE if receiver.readable else Events.NONE
            if receiver.finished:
                v.events |= Events.END_OF_STREAM
        if not v.config.fifo:
            self.send_due_ustats(v, now)
        if v.trace is not None:
            note(v, "sd", now, {"n": field, "gap": list(gap) if gap else None})

    def send_due_ustats(self, v: Variables, now: float) -> None:
        """STP-DT-026: report the gaps that have waited long enough."""
        for run in v.incoming.due_ustats(now):
            self._send_ustat(v, run)

    def _send_ustat(self, v: Variables, run: Run) -> None:
        """STP-DT-001: one run in one USTAT."""
        receiver = v.incoming
        receiver.reported()
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.vr_mr & PACKET_MASK
        first, end = (edge & PACKET_MASK for edge in run)
        self.put(v, packets.Ustat(*v.header, 0, n_r, n_mr, (first, end)))

    def _answer(self, v: Variables, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        v.outgoing.unheard = False
        self._send_stats(v, v.incoming.on_poll(n_s, n_ps, timestamp), n_ps, timestamp)
        if v.trace is not None:
            elements = v.incoming.whole_list()
            note(v, "poll_arrives", now, {"n_s": n_s, "n_ps": n_ps, "elements": elements})

    def announce_credit(self, v: Variables) -> None:
        """STP-DT-024: a STAT with the N(PS) and timestamp of the newest POLL answered."""
        n_ps, timestamp = v.incoming.last_poll
        self._send_stats(v, v.incoming.stat_lists(), n_ps, timestamp)
        if v.trace is not None:
            note(v, "announce", None, {"n_ps": n_ps, "elements": v.incoming.whole_list()})

    def _send_stats(
        self, v: Variables, lists: list[tuple[int, ...]], n_ps: int, timestamp: int
    ) -> None:
        receiver = v.incoming
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.vr_mr & PACKET_MASK
        for elements in lists:
            self.put(v, packets.Stat(*v.header, 0, n_r, n_mr, n_ps, timestamp, elements))
