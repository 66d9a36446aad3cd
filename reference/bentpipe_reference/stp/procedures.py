"""What a connection does with packets: the actions of the state table (STP/1 section 9).

Each is a method of its own, named by a row of :data:`~bentpipe_reference.stp.states.CELLS`.
"""

# ruff: noqa: ARG002 - actions have one signature

from __future__ import annotations

import math
from dataclasses import replace

from bentpipe_reference.stp.conditions import Conditions
from bentpipe_reference.stp.config import (
    CHALLENGE_S,
    CONFIRMATION_S,
    EARLY_CREDIT,
    MAX_CC,
    NO_RESPONSE_S,
)
from bentpipe_reference.stp.events import Events, abort_text, refusal_text
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
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
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.without import endak_for

_A, _C, _FIN = int(Flags.A), int(Flags.C), int(Flags.FIN)


class Procedures(Conditions):
    """What packets do to a connection."""

    # Beginning and end

    def take_call(self, begin: Begin, octets: int, now: float, *, confirmed: bool) -> None:
        """Section 5.2: a BEGIN of so many octets; open at once, or wait for confirmation."""
        self.handled = begin
        self.proven = False
        self.was_called = True
        self.arrived(octets)
        self.peer_csn = begin.csn
        self._learn_peer(begin.iss, begin.max_sd)
        self.outgoing.sender.grant(self.iss + begin.n_mr & PACKET_MASK, self.iss)
        if begin.data or begin.flags & _FIN:
            self._early[begin.iss] = (begin.data, begin.flags & _FIN)
        if confirmed:
            self.state = State.READY
            self._accepted(now)
            self.put(self.bgak(0))
        else:
            self.state = State.INCOMING
            self._asked_at = now
            self._confirm_until = now + self.confirmation_time()
            self.put(self.bgak(_C))
        self._note_packet("called", now, begin, "")

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

    def fail(self, text: str, reason: int, now: float | None = None) -> None:
        """STP-CC-006: the connection is over, and not as it should be."""
        if self.failure is None and not self.succeeded:
            self.failure, self.reason = text, reason
            self.events |= Events.FAILED
            self._note("outcome", now, {"result": "failure", "reason": int(reason)})
        self._over()

    def succeed(self, now: float | None = None) -> None:
        """STP-CC-005: both streams are through and acknowledged."""
        if self.failure is None and not self.succeeded:
            self.succeeded = True
            self.events |= Events.ENDED
            self._note("outcome", now, {"result": "success", "reason": 0})
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
        self.put(self._bgak(_C, begin.csn, begin.iss + self.config.credit, begin.iss))

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
        self._measure(now)
        sender = outgoing.sender
        outgoing.unheard = self.must_be_heard(bgak)
        if self.must_prove(bgak):
            initial, patience = self.config.timer_cc, self.proof_patience()
            self._proof = Proof(initial, self._transmissions, patience, now)
        # Who asks for confirmation has answered no POLL so far, so a new one is due.
        lost_touch = sender.unacknowledged and sender.vt_pd > 0
        asked = bool(bgak.flags & _C)
        outgoing.asks_at_once = (asked and outgoing.unheard) or lost_touch

    def must_be_heard(self, bgak: Bgak) -> bool:
        """STP-CC-030: whether POLLs have to make sure that the peer has the connection."""
        return True

    def must_prove(self, bgak: Bgak) -> bool:
        """STP-CC-032: whether the peer has not asked, and so may trust us by our CSN alone."""
        return not bgak.flags & _C

    def proof_patience(self) -> float:
        """STP-PL-008."""
        return NO_RESPONSE_S

    def _measure(self, now: float) -> None:
        """STP-PL-009: a BGAK measures if the packet that it answers was sent once."""
        if self._asked_at is not None:
            self.outgoing.rtt.opened(now - self._asked_at)
        self._asked_at = None

    def open_and_confirm(self, bgak: Bgak, now: float) -> None:
        """STP-CC-017: the same, and the peer wants its CSN back."""
        self.open(bgak, now)
        self.put(self.bgak(0))

    def be_refused(self, bgrej: Bgrej, now: float) -> None:
        """The call has failed."""
        self.fail(refusal_text(bgrej.reason), bgrej.reason, now)

    def be_confirmed(self, bgak: Bgak, now: float) -> None:
        """STP-CC-003: hand over what is held."""
        self.state = State.READY
        # The BGAK may tell of more credit than the BEGIN.
        self.outgoing.learn_credit(bgak.n_mr, bgak.n_r)
        self._measure(now)
        self._accepted(now)
        if bgak.flags & _C:
            self.put(self.bgak(0))

    def ask_again(self, packet: Packet, now: float) -> None:
        """STP-CC-015: the question was lost, or what answers it."""
        self._asked_at = None
        self.put(self.bgak(_C))

    def hold(self, sd: Sd | Sdp, now: float) -> None:
        """STP-CC-003: keep an early SD for the moment of confirmation."""
        assert self.receiver is not None
        if sd.n_s - self.receiver.iss & PACKET_MASK < EARLY_CREDIT:
            self._early.setdefault(sd.n_s, (sd.data, sd.flags & _FIN))

    def hold_and_ask_again(self, sdp: Sdp, now: float) -> None:
        """An SDP in state 3."""
        self.hold(sdp, now)
        self.ask_again(sdp, now)

    def forget(self, packet: Packet, now: float) -> None:
        """The connection is no more."""
        self._over()
        self.state = State.IDLE

    def let_another_wait(self, begin: Begin, now: float) -> None:
        """STP-CC-033: this connection goes on waiting beside that of the BEGIN."""

    def acknowledge_and_forget(self, end: End, now: float) -> None:
        """STP-CC-022."""
        self.put(endak_for(end))
        self.forget(end, now)

    def end_again_to_the_peer(self, bgak: Bgak, now: float) -> None:
        """Section 5.5: the END of an abort in state 2 could not name the peer's CSN."""
        assert self._release is not None
        self.peer_csn = bgak.csn
        self._release = replace(self._release, peer_csn=bgak.csn)
        self.put(self._release)

    def answer_begin_again(self, begin: Begin, now: float) -> None:
        """STP-CC-015: nothing else changes."""
        self.put(self.bgak(0))

    def challenge(self, packet: Begin | End, now: float) -> None:
        """STP-CC-018, STP-CC-021: "have you still got this connection?", once per second."""
        if now - self._challenged_at >= self.challenge_interval():
            self._challenged_at = now
            self.put(self.bgak(_C))

    def challenge_interval(self) -> float:
        """Seconds between challenges."""
        return CHALLENGE_S

    def confirm(self, bgak: Bgak, now: float) -> None:
        """STP-CC-017."""
        self.put(self.bgak(0))

    def disown_other_incarnation(self, bgak: Bgak, now: float) -> None:
        """STP-CC-007: the peer has lost this connection and begun another."""
        self.put(self.end(_A, Reason.NO_CONNECTION, bgak.csn))
        self.fail("the peer answered with another number", Reason.NO_CONNECTION, now)

    def be_disowned(self, end: End, now: float) -> None:
        """The peer knows no such connection."""
        self.fail(abort_text(Reason.NO_CONNECTION), Reason.NO_CONNECTION, now)

    def be_aborted(self, end: End, now: float) -> None:
        """STP-CC-006, STP-CC-022, STP-CC-027."""
        self.put(endak_for(end))
        self.fail(abort_text(end.reason), end.reason, now)

    def be_released(self, end: End, now: float) -> None:
        """STP-CC-022, section 5.5: the peer is complete, and so are we."""
        self.put(endak_for(end))
        self.succeed(now)

    def take_sd(self, sd: Sd, now: float) -> None:
        """Section 6.2."""
        self._receive_sd(sd.n_s, sd.data, sd.flags & _FIN, now)

    def take_sdp(self, sdp: Sdp, now: float) -> None:
        """STP-DT-018: first the SD, then the POLL."""
        self._receive_sd(sdp.n_s, sdp.data, sdp.flags & _FIN, now)
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
        self.outgoing.unheard = False
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
        self.outgoing.unheard = False
        self._send_stats(self.receiver.on_poll(n_s, n_ps, timestamp), n_ps, timestamp)
        if self._trace is not None:
            elements = self.receiver.whole_list()
            values = {"n_s": n_s, "n_ps": n_ps, "elements": elements}
            self._note("poll_arrives", now, values)

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
