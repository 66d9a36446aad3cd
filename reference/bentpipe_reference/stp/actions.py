"""The actions of the state table (STP/1 section 9), and the procedures of which they are made.

Each is a function of a connection's variables, which it changes; packets go into the outbox.
"""

# ruff: noqa: ARG002 - actions have one signature

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.stp import config, packets
from bentpipe_reference.stp.codec import encode
from bentpipe_reference.stp.cookies import CookieJar, Ticket
from bentpipe_reference.stp.events import Events, abort_text, refusal_text
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle, endak_for
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Flags,
    Packet,
    Reason,
    Sd,
    Sdp,
)  # fmt: skip
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import TAGGED, State
from bentpipe_reference.stp.tracing import note, note_packet
from bentpipe_reference.stp.variables import Address, Variables

_A, _FIN, _V = int(Flags.A), int(Flags.FIN), int(Flags.V)

Numbers = Callable[[Address], tuple[int, int]]
"""Chooses the CSN and the ISS of a connection with a peer."""


class Actions:
    """The actions; one object serves all connections of an endpoint.

    Args:
        guards: the conditions.
        idle: answers what the state idle answers.
        receiver: the class of the receiving side.
        jar: the cookies received.
        numbers: chooses the numbers of a call anew.
    """

    def __init__(
        self, guards: Guards, idle: Idle, receiver: type[Receiver], jar: CookieJar, numbers: Numbers
    ) -> None:
        self.guards = guards
        self.idle = idle
        self._receiver = receiver
        self._jar = jar
        self._numbers = numbers

    # Sending

    def put(self, v: Variables, packet: Packet) -> None:
        """Send a packet."""
        v.outbox.append(packet)
        if v.trace is not None and packet.type not in TAGGED:
            v.untold.append(packet)

    def bgak(self, v: Variables, now: float) -> Bgak:
        """A BGAK with the numbers of this connection and a fresh cookie."""
        assert v.peer_csn is not None
        receiver, cookie = v.incoming, self.idle.cookies.make(v.identity.peer, now)
        return Bgak(
            *v.header, 0, v.iss & PACKET_MASK, receiver.vr_mr & PACKET_MASK, v.csn, v.peer_csn,
            receiver.vr_r & PACKET_MASK, v.config.own_max_sd, cookie,
        )  # fmt: skip

    def end(self, v: Variables, flags: int, reason: Reason) -> End:
        """An END of this connection; N(R) is VR(R), just above the peer's FIN once complete."""
        n_r = 0 if v.receiver is None else v.receiver.vr_r & PACKET_MASK
        return End(*v.header, flags, n_r, reason, v.csn, v.peer_csn or 0)

    # Opening

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-012: a BEGIN with a good cookie opens a connection."""
        v.handled, v.handled_at = begin, now
        v.was_called = True
        v.peer_csn = begin.csn
        v.state = State.READY
        v.events |= Events.ACCEPTED
        self._learn_peer(v, begin.iss, begin.max_sd)
        outgoing = v.outgoing
        outgoing.sender.grant(v.iss + begin.n_mr & PACKET_MASK, v.iss)
        outgoing.open(now)
        if begin.data or begin.flags & _FIN:
            self.receive_sd(v, begin.iss, begin.data, begin.flags & _FIN, now)
        self.put(v, self.bgak(v, now))
        note_packet(v, "called", now, begin, "")

    def _learn_peer(self, v: Variables, iss: int, max_sd: int | None) -> None:
        v.receiver = self._receiver(v.config, iss, v.share)
        v.outgoing.learn(max_sd)

    def send_first_begin(self, v: Variables, now: float) -> None:
        """STP-CC-034, STP-CC-040: with the first data of our stream, if there is a cookie."""
        if v.ticket is None:
            v.ticket = self._jar.take(v.identity.peer, now)
        v.begun = self._jar.begin()
        v.made = v.made or v.begun
        begin = Begin(
            *v.header, 0, v.iss & PACKET_MASK, v.share.sds, v.csn, max_sd=v.config.own_max_sd
        )
        if v.ticket is not None:
            v.outgoing.learn(v.ticket.max_sd)
            begin = replace(begin, cookie=v.ticket.cookie)
            data, flags = self.first_data(v, begin)
            if self._jar.voids(v.identity.peer, v.made):
                flags |= _V
            begin = replace(begin, flags=flags, data=data)
        v.begin = begin
        self.repeat_begin(v, now)

    def first_data(self, v: Variables, begin: Begin) -> tuple[bytes, int]:
        """STP-CC-040: data and FIN flag for ``begin``, as much as a packet of the path carries."""
        sender = v.outgoing.sender
        if not sender.has_new:
            return b"", 0
        entry = sender.take_new(v.config.mtu - v.config.overhead - len(encode(begin)))
        return entry.data, entry.fin

    def repeat_begin(self, v: Variables, now: float) -> None:
        """STP-CC-014, STP-CC-016: the same packet; at last the call fails as if aborted."""
        assert v.begin is not None
        if v.transmissions >= self.max_cc(v):
            self.abort(v, "the peer does not answer", Reason.NO_ANSWER, now)
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

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """STP-CC-037: with new numbers, the cookie given, and the data from the beginning."""
        assert bgrej.cookie is not None
        self._measure(v, now)
        v.calls_anew += 1
        v.csn, v.iss = self._numbers(v.identity.peer)
        v.outgoing.restart(v.csn, v.iss)
        v.ticket = Ticket(bgrej.cookie, bgrej.max_sd, now, v.begun)
        v.transmissions = 0
        self.send_first_begin(v, now)

    # Ending

    def fail(self, v: Variables, text: str, reason: int, now: float | None = None) -> None:
        """STP-CC-006: the connection ends in failure."""
        if not v.is_over:
            v.failure, v.reason = text, reason
            v.events |= Events.FAILED
            if v.receiver is None and v.begin is not None and v.begin.cookie is not None:
                self._jar.end(v.identity.peer)
            note(v, "outcome", now, {"result": "failure", "reason": int(reason)})
        v.outgoing.sender.drop()

    def fail_unless_complete(self, v: Variables, text: str, reason: int, now: float) -> None:
        """Section 5.4: nothing that comes later changes the success of a complete endpoint."""
        if self.guards.is_complete(v):
            self.succeed(v, now)
        else:
            self.fail(v, text, reason, now)

    def succeed(self, v: Variables, now: float | None = None) -> None:
        """STP-CC-005: both streams are complete and acknowledged."""
        if not v.is_over:
            v.succeeded = True
            v.events |= Events.ENDED
            note(v, "outcome", now, {"result": "success", "reason": 0})

    def send_end(self, v: Variables, end: End, now: float) -> None:
        """Section 5.4: send an END and wait for its acknowledgment."""
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
        """Section 5.4: send an END with A flag, and fail."""
        self.send_end(v, self.end(v, _A, reason), now)
        note(v, "release", now, {})
        self.fail(v, text, reason, now)

    def release(self, v: Variables, now: float) -> None:
        """Section 5.4: send the END of a complete connection."""
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

    def give_way(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-041: a later call replaces this connection."""
        self.fail_unless_complete(v, "the peer has called again", Reason.ABORTED, now)
        v.state = State.IDLE

    def stay(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-041: a BEGIN that opens nothing does not change the connection."""

    # BEGIN

    def refuse_version(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-019."""
        self.idle.refuse_version(Arrival(v.identity.peer, now), begin)

    def refuse_call(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-043."""
        self.idle.refuse_beside_own_call(Arrival(v.identity.peer, now), begin)

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """STP-CC-015: nothing else changes."""
        self.put(v, self.bgak(v, now))

    # BGAK, BGREJ

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        """Section 5.1: the call is accepted."""
        v.peer_csn = bgak.csn
        v.events |= Events.OPENED
        self._measure(v, now)
        self._learn_peer(v, bgak.iss, bgak.max_sd)
        v.outgoing.learn_credit(bgak.n_mr, bgak.n_r)
        v.outgoing.open(now)
        assert v.begin is not None
        if v.begin.flags & _V:
            self._jar.open(v.identity.peer, v.made)
        if bgak.cookie is not None:
            self._jar.put(v.identity.peer, Ticket(bgak.cookie, bgak.max_sd, now, v.begun))

    def _measure(self, v: Variables, now: float) -> None:
        """STP-PL-009: an answer is a measurement if the BEGIN was sent once."""
        if v.asked_at is not None:
            v.outgoing.rtt.sample(now - v.asked_at)

    def answer_stray_bgak(self, v: Variables, bgak: Bgak, now: float) -> None:
        """STP-CC-020."""
        self.idle.answer_unknown(Arrival(v.identity.peer, now), bgak)

    def be_refused(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """The call has failed."""
        self.fail(v, refusal_text(bgrej.reason), bgrej.reason, now)

    # END

    def acknowledge(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-022."""
        self.put(v, endak_for(end))

    def be_disowned(self, v: Variables, end: End, now: float) -> None:
        """The peer does not know the connection."""
        reason = Reason.NO_CONNECTION
        self.fail_unless_complete(v, abort_text(reason), reason, now)

    def be_aborted(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-006, STP-CC-022, STP-CC-027."""
        self.put(v, endak_for(end))
        self.fail_unless_complete(v, abort_text(end.reason), end.reason, now)

    def be_released(self, v: Variables, end: End, now: float) -> None:
        """STP-CC-022, section 5.4: both endpoints are complete."""
        self.put(v, endak_for(end))
        self.succeed(v, now)

    # Data and reports

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
        v.outgoing.on_stat(stat, now)

    def take_ustat(self, v: Variables, ustat: packets.Ustat, now: float) -> None:
        """Section 6.4."""
        v.outgoing.on_ustat(ustat, now)

    def discard_report(
        self, v: Variables, report: packets.Stat | packets.Ustat, now: float
    ) -> None:
        """STP-DT-007, STP-DT-023."""
        v.outgoing.discard(report, now)

    def receive_sd(self, v: Variables, field: int, data: bytes, fin: int, now: float) -> None:
        """Section 6.2: take the SD numbered ``field``, and report a gap before it."""
        receiver = v.receiver
        assert receiver is not None
        before = receiver.vr_r
        gap = receiver.on_sd(field, data, fin)
        if gap is not None:
            if v.config.fifo:
                self._send_ustat(v, gap)
            else:  # STP-DT-026: an eighth of the round-trip time; of 0.6 s while it is unknown
                receiver.hold_back(gap, now + (v.outgoing.rtt.srtt or 0.6) / 8)
        if receiver.vr_r != before:
            if receiver.readable and v.events is not Events.READABLE:
                v.events |= Events.READABLE
            if receiver.finished:
                v.events |= Events.END_OF_STREAM
        if v.trace is not None:
            waits = gap is not None and not v.config.fifo
            note(v, "sd", now, {"n": field, "gap": list(gap) if gap else None, "waits": waits})
        if not v.config.fifo:
            self.send_due_ustats(v, now)

    def send_due_ustats(self, v: Variables, now: float) -> None:
        """STP-DT-026: report the gaps that have waited long enough."""
        for run in v.incoming.due_ustats(now):
            self._send_ustat(v, run)
            note(v, "late", now, {"gap": list(run)})

    def _send_ustat(self, v: Variables, run: Run) -> None:
        """STP-DT-001: one run in one USTAT."""
        receiver = v.incoming
        receiver.reported()
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.vr_mr & PACKET_MASK
        first, end = (edge & PACKET_MASK for edge in run)
        self.put(v, packets.Ustat(*v.header, 0, n_r, n_mr, (first, end)))

    def _answer(self, v: Variables, n_s: int, n_ps: int, timestamp: int, now: float) -> None:
        for elements in v.incoming.on_poll(n_s):
            self._send_stat(v, n_ps, timestamp, elements)
        if v.trace is not None:
            whole = v.incoming.whole_list()
            note(v, "poll_arrives", now, {"n_s": n_s, "n_ps": n_ps, "elements": whole})

    def announce_credit(self, v: Variables) -> None:
        """STP-DT-024: a STAT that answers no POLL."""
        v.incoming.reported()
        self._send_stat(v, 0, 0, ())
        note(v, "announce", None, {})

    def _send_stat(
        self, v: Variables, n_ps: int, timestamp: int, elements: tuple[int, ...]
    ) -> None:
        n_r, n_mr = v.incoming.vr_r & PACKET_MASK, v.incoming.vr_mr & PACKET_MASK
        self.put(v, packets.Stat(*v.header, 0, n_r, n_mr, n_ps, timestamp, elements))
