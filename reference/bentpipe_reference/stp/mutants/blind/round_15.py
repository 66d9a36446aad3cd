"""A round of thirty faults of STP/1: corners of calls, cookies, reports, windows, timers, ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import LEAST_MAX_SD
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    Endak,
    Packet,
    Poll,
    Stat,
    Ustat,
)  # fmt: skip
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver, Run
from bentpipe_reference.stp.sender import Sender, SentSd
from bentpipe_reference.stp.sequence import TAG_MASK, unwrap_poll
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

# Being called


class VoidsAllCookiesMade(Cookies):
    """The V flag voids every cookie made so far, later ones than the one carried included."""

    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if voids:
            self._void[peer] = self._last


class ForgetsVoidUsedCookies(Cookies):
    """The V flag makes it forget the used cookies before, as they are not good anyway."""

    def use(self, peer: Hashable, cookie: bytes | None, *, voids: bool) -> None:
        """See :class:`Cookies`."""
        super().use(peer, cookie, voids=voids)
        if voids:
            void = self._void[peer]
            kept = {n: at for n, at in self._used.items() if at != peer or n >= void}
            self._used, self._oldest = kept, sorted(kept)


class SpendsCookieOfDiscardedCall(Idle):
    """A BEGIN that is discarded for its size uses its cookie up."""

    def discard(self, arrival: Arrival, packet: Packet) -> None:
        """See :class:`Idle`."""
        if isinstance(packet, Begin):
            self.cookies.use(arrival.peer, packet.cookie, voids=False)


class GoodCookieEndsConnection(Guards):
    """A good cookie ends the connection, though the BEGIN has too much data to open another."""

    def would_open(self, v: Variables, begin: Begin) -> bool:
        """See :class:`Guards`."""
        arrival = Arrival(v.identity.peer, v.handled_at)
        return not (
            self._idle.nobody_listens(arrival, begin) or self._idle.is_unproven(arrival, begin)
        )


class BgakAgainGivesCredit(Actions):
    """The BGAK that answers a repeated BEGIN announces all credit there is by then."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        v.incoming.reported()
        super().answer_begin_again(v, begin, now)


class KeepsRoomOfReplaced(Actions):
    """The memory promised to a connection that a later call replaces is not given back."""

    def give_way(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        super().give_way(v, begin, now)
        v.share.sds = 0


class AnswersBeginOfCalled(Guards):
    """A BEGIN with the peer's CSN is answered with a BGAK, whoever has called."""

    def is_repeated(self, v: Variables, begin: Begin) -> bool:
        """See :class:`Guards`."""
        return self.is_of_peer(v, begin)


class LastMaxSdCounts(Actions):
    """Of several MaxSD options the last one counts."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        """See :class:`Actions`."""
        super().take_call(v, replace(begin, max_sd=_last_max_sd(begin)), now)

    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        """See :class:`Actions`."""
        super().open(v, replace(bgak, max_sd=_last_max_sd(bgak)), now)


def _last_max_sd(packet: Begin | Bgak) -> int | None:
    others = [value for kind, value in packet.options if kind == 1 and len(value) == 2]
    return int.from_bytes(others[-1], "big") if others else packet.max_sd


# Calling


class SkipsSmallMaxSd(Outgoing):
    """A MaxSD below 512 is taken for no MaxSD, so that an earlier one goes on."""

    def learn(self, max_sd: int | None) -> None:
        """See :class:`Outgoing`."""
        super().learn(None if max_sd is not None and max_sd < LEAST_MAX_SD else max_sd)


class VoidsOncePerCall(CookieJar):
    """Only the first BEGIN with a cookie of a call has the V flag, not those of calls anew."""

    def __init__(self, capacity: int) -> None:
        """See :class:`CookieJar`."""
        super().__init__(capacity)
        self._flagged: set[int] = set()

    def voids(self, peer: Hashable, made: int) -> bool:
        """See :class:`CookieJar`."""
        first = made not in self._flagged
        self._flagged.add(made)
        return first and super().voids(peer, made)


class RefusalLeavesNoBegin(Actions):
    """A refused call is not taken for one whose BEGIN may still be on its way."""

    def be_refused(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        v.begin = None
        super().be_refused(v, bgrej, now)


class CountsBeginsPerCall(Actions):
    """The repetitions of all BEGINs of a call are counted together, those before calls anew too."""

    _spent: WeakKeyDictionary[Variables, int] = WeakKeyDictionary()

    def call_anew(self, v: Variables, bgrej: Bgrej, now: float) -> None:
        """See :class:`Actions`."""
        self._spent[v] = self._spent.get(v, 0) + v.transmissions - 1
        super().call_anew(v, bgrej, now)

    def max_cc(self, v: Variables) -> int:
        """See :class:`Actions`."""
        spent = self._spent.get(v, 0) if v.state is State.OUTGOING else 0
        return max(1, super().max_cc(v) - spent)


class DisownsWithOwnCsn(Actions):
    """The END that answers a BGAK for another CSN names the CSN of the present call."""

    def answer_stray_bgak(self, v: Variables, bgak: Bgak, now: float) -> None:
        """See :class:`Actions`."""
        super().answer_stray_bgak(v, replace(bgak, peer_csn=v.csn), now)


# Receiving


class UstatGivesNoCredit(Actions):
    """The credit that a USTAT announces is not remembered."""

    def _send_ustat(self, v: Variables, run: Run) -> None:
        """See :class:`Actions`."""
        remembered = v.incoming.vr_mr
        super()._send_ustat(v, run)
        v.incoming.vr_mr = remembered


class FinBelowHighest(Receiver):
    """A FIN below VR(H) - 1 is discarded, even if only a POLL has raised VR(H)."""

    def contradicts(self, number: int) -> bool:
        """See :class:`Receiver`."""
        return number < self.vr_h - 1


class EmptySdEndsStream(Receiver):
    """An empty SD is taken for the end of the stream."""

    def deliver(self, data: bytes, fin: int) -> None:
        """See :class:`Receiver`."""
        super().deliver(data, fin or int(not data))


class OneUstatStandsForAll(Receiver):
    """As soon as one USTAT that was held back leaves, the others are forgotten."""

    def due_ustats(self, now: float) -> list[Run]:
        """See :class:`Receiver`."""
        runs = super().due_ustats(now)
        if runs:
            self._waiting.clear()
        return runs


class AnnouncesAfterFin(Receiver):
    """New credit is announced though the FIN has been received."""

    def reopened(self) -> bool:
        """See :class:`Receiver`."""
        fin, self.fin_number = self.fin_number, None
        opened = super().reopened()
        self.fin_number = fin
        return opened


# Sending


class BadStatCountsAsNewest(Sender):
    """A STAT with an invalid list is discarded, but its N(PS) becomes VT(PA)."""

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        """See :class:`Sender`."""
        read = super().read_report(packet)
        if read is None and isinstance(packet, Stat) and packet.n_ps:
            n_ps = unwrap_poll(packet.n_ps, self.vt_ps)
            if n_ps <= self.vt_ps:
                self.vt_pa = max(self.vt_pa, n_ps)
        return read


class UstatDoesNotWrap(Sender):
    """A USTAT whose run goes on beyond 2^24 - 1 is taken for one with a falling list."""

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        """See :class:`Sender`."""
        if isinstance(packet, Ustat) and packet.elements[0] > packet.elements[1]:
            return None
        return super().read_report(packet)


class LossDatedByFirstTransmission(Sender):
    """Whether a loss calls for a reduction is judged by the first transmission of the SD."""

    def retransmit(self, entry: SentSd) -> None:
        """See :class:`Sender`."""
        serial = entry.serial
        super().retransmit(entry)
        entry.serial = serial


class SilenceFreesRetransmission(Congestion):
    """After the reduction by silence, too, one retransmission does not wait for the window."""

    def on_second_silence(self, serial: int) -> None:
        """See :class:`Congestion`."""
        super().on_second_silence(serial)
        self.first_retransmission = True


class RetransmitsUnpaced(Outgoing):
    """Retransmissions wait for the window, but not for the pacing."""

    def _may_repeat(self, entry: SentSd) -> bool:
        """See :class:`Outgoing`."""
        congestion = self.congestion
        return congestion.first_retransmission or congestion.room(self.sender.flight, entry.size)


class FinAwaitsNoCredit(Outgoing):
    """An empty SD with FIN that has no credit is not asked for."""

    def is_closed(self) -> bool:
        """See :class:`Outgoing`."""
        return super().is_closed() and self.sender.unsent > 0


# Timers


class UstatIsNoAnswer(Outgoing):
    """Timer_NO-RESPONSE is stopped by STATs only."""

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        """See :class:`Outgoing`."""
        since = self.polling._unanswered_since  # noqa: SLF001
        super().on_ustat(ustat, now)
        self.polling._unanswered_since = since  # noqa: SLF001


class AnnouncementLeavesSilence(Outgoing):
    """A STAT with N(PS) 0 does not start Timer_SILENCE again."""

    def on_stat(self, stat: Stat, now: float) -> None:
        """See :class:`Outgoing`."""
        polling = self.polling
        before = polling._silent_at, polling._silence, polling.silences  # noqa: SLF001
        super().on_stat(stat, now)
        if not stat.n_ps:
            polling._silent_at, polling._silence, polling.silences = before  # noqa: SLF001


class AsksOnceWhenIdle(Polling):
    """Timer_SILENCE is not started by a POLL before which no SD was sent."""

    def polled(self, now: float) -> None:
        """See :class:`Polling`."""
        needed = self.is_due or self._silent_at < math.inf
        super().polled(now)
        if not needed:
            self.stop_silence()


# Ending


class PollProlongsRelease(Actions):
    """Each POLL that a complete endpoint answers starts the release wait again."""

    def answer_poll(self, v: Variables, poll: Poll, now: float) -> None:
        """See :class:`Actions`."""
        super().answer_poll(v, poll, now)
        if v.is_over:
            v.release_at = now + self.release_wait(v)


class EndBeforeAnswers(Actions):
    """The END of a complete connection overtakes the answers that are due."""

    def release(self, v: Variables, now: float) -> None:
        """See :class:`Actions`."""
        super().release(v, now)
        v.outbox.insert(0, v.outbox.pop())


class EndakByTag(Guards):
    """An ENDAK is recognized by the low 16 bits of its CSN."""

    def is_for_us(self, v: Variables, packet: Bgak | Bgrej | Endak) -> bool:
        """See :class:`Guards`."""
        if isinstance(packet, Endak):
            return packet.peer_csn & TAG_MASK == v.csn & TAG_MASK
        return super().is_for_us(v, packet)


def _with(part: type[Any]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_part(part)


FAULTS = [
    Fault(
        "stp-b15-v-voids-later-cookies",
        "a BEGIN with V flag voids cookies that are later than its own",
        "STP-CC-035; STP-CC-012", _with(VoidsAllCookiesMade),
    ),
    Fault(
        "stp-b15-v-forgets-used-cookies",
        "answers a late repetition with a fresh cookie if a BEGIN with V flag came since",
        "STP-CC-038", _with(ForgetsVoidUsedCookies),
    ),
    Fault(
        "stp-b15-discarded-call-spends-cookie",
        "takes the cookie of a BEGIN with too much data, which it discards, for used",
        "STP-CC-012; STP-CC-038", _with(SpendsCookieOfDiscardedCall),
    ),
    Fault(
        "stp-b15-discarded-call-ends-connection",
        "ends a connection for a BEGIN with a good cookie that has too much data to open one",
        "STP-CC-041", _with(GoodCookieEndsConnection),
    ),
    Fault(
        "stp-b15-bgak-again-gives-credit",
        "announces new credit in the BGAK that answers a repeated BEGIN",
        "STP-CC-015", _with(BgakAgainGivesCredit),
    ),
    Fault(
        "stp-b15-replaced-keeps-room",
        "loses the memory promised to connections that later calls have replaced",
        "STP-CC-012; STP-CC-041", _with(KeepsRoomOfReplaced), setting="small-over-ip",
    ),
    Fault(
        "stp-b15-bgak-to-called-peer",
        "answers a BEGIN with the CSN of a peer that was called with a BGAK",
        "STP-CC-041; STP-CC-019", _with(AnswersBeginOfCalled),
    ),
    Fault(
        "stp-b15-last-max-sd",
        "goes by the last of several MaxSD options",
        "STP-PF-018; STP-PF-009", _with(LastMaxSdCounts),
    ),
    Fault(
        "stp-b15-small-max-sd-skipped",
        "ignores the MaxSD of a BGAK if it is below 512, and goes on with the cookie's",
        "STP-PF-009", _with(SkipsSmallMaxSd),
    ),
    Fault(
        "stp-b15-v-once-per-call",
        "leaves the V flag out when a call begins anew for the second time",
        "STP-CC-039", _with(VoidsOncePerCall),
    ),
    Fault(
        "stp-b15-no-v-after-refusal",
        "sets no V flag after a call with a cookie that was refused",
        "STP-CC-039", _with(RefusalLeavesNoBegin),
    ),
    Fault(
        "stp-b15-begins-counted-per-call",
        "gives a call anew up early when its first BEGIN had to be repeated",
        "STP-CC-016; STP-CC-044", _with(CountsBeginsPerCall),
    ),
    Fault(
        "stp-b15-stray-bgak-own-csn",
        "answers a BGAK for an earlier CSN with an END that names the present one",
        "STP-CC-020", _with(DisownsWithOwnCsn),
    ),
    Fault(
        "stp-b15-ustat-credit-not-kept",
        "discards SDs within the credit that only a USTAT has announced",
        "STP-DT-020", _with(UstatGivesNoCredit),
    ),
    Fault(
        "stp-b15-fin-below-vr-h",
        "discards a FIN below VR(H) - 1 though no SD above it has arrived",
        "STP-DT-020; STP-DT-028", _with(FinBelowHighest),
    ),
    Fault(
        "stp-b15-empty-sd-is-end",
        "takes an empty SD without FIN flag for the end of the stream",
        "STP-DT-012; STP-CC-004", _with(EmptySdEndsStream),
    ),
    Fault(
        "stp-b15-one-ustat-for-all",
        "forgets the other gaps that wait when it reports one",
        "STP-DT-031; STP-DT-026", _with(OneUstatStandsForAll), setting="reordering",
    ),
    Fault(
        "stp-b15-announces-after-fin",
        "announces new credit after it has received the FIN",
        "STP-DT-024", _with(AnnouncesAfterFin), setting="mtu-576-credit-40",
    ),
    Fault(
        "stp-b15-bad-stat-moves-vt-pa",
        "discards a valid STAT if an invalid one with a higher N(PS) came before",
        "STP-DT-023; STP-DT-007", _with(BadStatCountsAsNewest),
    ),
    Fault(
        "stp-b15-ustat-across-wrap",
        "discards a USTAT whose run crosses 2^24",
        "STP-DT-014; STP-DT-029", _with(UstatDoesNotWrap),
    ),
    Fault(
        "stp-b15-lost-again-no-reduction",
        "does not reduce its window when a retransmission made after a reduction is lost",
        "STP-CG-005", _with(LossDatedByFirstTransmission),
    ),
    Fault(
        "stp-b15-silence-frees-retransmission",
        "sends a retransmission beyond the window after the reduction by silence",
        "STP-CG-002", _with(SilenceFreesRetransmission),
    ),
    Fault(
        "stp-b15-retransmissions-unpaced",
        "sends all retransmissions that the window permits at once",
        "STP-CG-008", _with(RetransmitsUnpaced),
    ),
    Fault(
        "stp-b15-fin-awaits-no-credit",
        "does not poll while nothing but its FIN waits for credit",
        "STP-DT-025", _with(FinAwaitsNoCredit),
    ),
    Fault(
        "stp-b15-ustat-no-response",
        "gives a peer up that has answered with USTATs only for 60 s",
        "STP-PL-008", _with(UstatIsNoAnswer),
    ),
    Fault(
        "stp-b15-announcement-leaves-silence",
        "does not start Timer_SILENCE again when credit is announced",
        "STP-PL-007", _with(AnnouncementLeavesSilence),
    ),
    Fault(
        "stp-b15-keep-alive-asks-once",
        "does not repeat the POLL of Timer_KEEP-ALIVE",
        "STP-PL-007", _with(AsksOnceWhenIdle),
    ),
    Fault(
        "stp-b15-poll-prolongs-release",
        "starts the release wait again with every POLL",
        "STP-CC-031", _with(PollProlongsRelease),
    ),
    Fault(
        "stp-b15-end-before-stat",
        "sends the END before the STAT that is due with it",
        "STP-CC-028", _with(EndBeforeAnswers),
    ),
    Fault(
        "stp-b15-endak-by-tag",
        "takes an ENDAK for its own by the low 16 bits of the CSN",
        "STP-CC-026; STP-SEC-005", _with(EndakByTag),
    ),
]  # fmt: skip
