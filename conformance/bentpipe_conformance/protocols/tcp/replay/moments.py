"""Every acknowledgment of a flow together with what preceded it.

Checkers of loss recovery ask the same questions of each acknowledgment: was the sender in recovery,
how far does recover reach, could a timer explain what was sent next, has the path shown reordering.
:func:`read_moments` answers them in one walk over the flow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bentpipe_conformance.protocols.tcp.replay.events import (
    DUPLICATE_THRESHOLD,
    Ack,
    Part,
    Sent,
    octets,
    part,
)
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Flow
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.pacing import longest_pause
from bentpipe_conformance.protocols.tcp.replay.recovery import (
    PROMPT_S,
    ROUND_TRIP_SHARE,
    Episode,
    soonest_timeout,
)
from bentpipe_conformance.protocols.tcp.replay.round_trips import (
    measurements,
    minimum_rtt,
    timed_rtt,
)
from bentpipe_conformance.protocols.tcp.replay.scoreboard import AT_ONCE_S
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

SLUGGISH_S = 0.1
"""A reaction later than the replay allows, but sooner than this, may be the bed's fault."""

EXACT_S = 0.001
"""Timing error up to which a bed counts as exact: then a late reaction is the IUT's own."""


@dataclass(slots=True, eq=False)
class Situation:
    """What changes seldom of a sender's situation; acknowledgments that meet the same share it.

    Attributes:
        rtt: smallest round-trip time of the flow, in seconds; 0.0 when unknown.
        longest_rtt: the largest one so far.
        timed_rtt: the same, as far as timeouts certainly follow it yet.
        episode: the recovery episode that was running, None outside recovery.
        fast_recover: highest recover certainly recorded by a fast retransmit; -1 when none was.
        recover: the same, timeouts included.
        reach: the highest that may have been recorded: what seems to continue an episode may have
            begun another.
        reordered: the path or the tester has shown reordering or duplication of data before.
        shadow: below this offset another recovery may be under way that nothing has shown yet: the
            highest retransmitted so far, or snd_max when the last episode ended, for a sender can
            enter the next recovery at the end of one.
        disturbed: a timer may have expired in the running episode although no timeout is seen.
        resent: one past the highest offset retransmitted so far.
        pause: seconds for which a pacing timer may have run so far.
    """

    rtt: float
    longest_rtt: float
    timed_rtt: float
    episode: Episode | None
    fast_recover: int
    recover: int
    reach: int
    reordered: bool
    shadow: int
    disturbed: bool
    resent: int
    pause: float


@dataclass(slots=True, eq=False)
class Run:
    """What has come since the last acknowledgment of new data; where nothing changes it is shared.

    Attributes:
        progress: when the retransmission timer was certainly last restarted: by the last
            acknowledgment of new data, or by data sent while nothing was outstanding. Of the
            partial acknowledgments of an episode only the first counts (RFC 6582 section 3.2).
        last_advance: that acknowledgment, None before the first.
        repeats: acknowledgments since then that advance nothing while data is outstanding, this
            one included, duplicates or not.
        pure: every repeat since the last advance was a duplicate acknowledgment, and none reported
            a duplicate segment, which shows no loss (RFC 2883 section 5).
        informative: how many acknowledgments since then, that one included, reported newly held
            data in SACK blocks.
        window_edge: highest right edge of the window offered so far, this one included.
    """

    progress: float
    last_advance: Ack | None
    repeats: int
    pure: bool
    informative: int
    window_edge: int


@dataclass(slots=True, eq=False)
class Moment:
    """An acknowledgment and the sender's situation when it arrived.

    Attributes:
        ack: the acknowledgment.
        situation: what changes seldom; each part can be asked of the moment itself.
        run: what a receiver of data does not change; likewise.
    """

    ack: Ack
    situation: Situation
    run: Run
    progress: ClassVar[Part[float]] = part("run.progress")
    last_advance: ClassVar[Part[Ack | None]] = part("run.last_advance")
    repeats: ClassVar[Part[int]] = part("run.repeats")
    pure: ClassVar[Part[bool]] = part("run.pure")
    informative: ClassVar[Part[int]] = part("run.informative")
    window_edge: ClassVar[Part[int]] = part("run.window_edge")
    rtt: ClassVar[Part[float]] = part("situation.rtt")
    longest_rtt: ClassVar[Part[float]] = part("situation.longest_rtt")
    timed_rtt: ClassVar[Part[float]] = part("situation.timed_rtt")
    episode: ClassVar[Part[Episode | None]] = part("situation.episode")
    fast_recover: ClassVar[Part[int]] = part("situation.fast_recover")
    recover: ClassVar[Part[int]] = part("situation.recover")
    reach: ClassVar[Part[int]] = part("situation.reach")
    reordered: ClassVar[Part[bool]] = part("situation.reordered")
    shadow: ClassVar[Part[int]] = part("situation.shadow")
    disturbed: ClassVar[Part[bool]] = part("situation.disturbed")
    resent: ClassVar[Part[int]] = part("situation.resent")
    pause: ClassVar[Part[float]] = part("situation.pause")

    @property
    def open(self) -> bool:
        """Whether the sender was outside recovery and above every earlier recover."""
        above = self.ack.ack > self.reach and self.ack.ack >= self.shadow
        return self.episode is None and above

    def opened(self, *, plain: bool) -> bool:
        """The same; ``plain`` says that no recovery goes on that retransmits nothing."""
        over = self.episode is None and self.ack.ack > max(self.reach, self.resent - 1)
        return over if plain else self.open

    @property
    def third(self) -> bool:
        """Whether it is the third duplicate in a row."""
        return self.ack.duplicate and self.ack.duplicates == DUPLICATE_THRESHOLD

    @property
    def retransmissions(self) -> list[Sent]:
        """Retransmissions this acknowledgment certainly caused: no timer can explain them.

        What begins with a window probe is no retransmission in that sense.
        """
        again = (sent for sent in self.ack.responses if sent.retransmission and not sent.probed)
        return [sent for sent in again if self.caused(sent)]

    @property
    def new_data(self) -> list[Sent]:
        """New data this acknowledgment clocked out.

        Left out are window probes of one octet, and what a tail loss probe may have sent: its timer
        runs two round trips from the last transmission (RFC 8985 section 7.2).
        """
        return [
            sent for sent in self.ack.responses
            if sent.new and not sent.retransmission and sent.payload > 1
            and (sent.since_arrival <= PROMPT_S or sent.since_sent < 1.5 * self.rtt)
        ]  # fmt: skip

    def caused(self, sent: Sent) -> bool:
        """Whether the acknowledgment, not a timer, caused a response.

        Retransmission timers and tail loss probes wait longer than a round trip from the last
        progress (RFC 6298 section 2, RFC 8985 section 7.2).
        """
        waited = sent.time - self.progress
        if waited < ROUND_TRIP_SHARE * self.timed_rtt:
            return True
        return sent.since_arrival <= PROMPT_S and waited < soonest_timeout(self.timed_rtt)


Reaction = Literal["at once", "unclear", "late"]


def acts_at_once(ics: Mapping[str, Any]) -> bool:
    """Whether the implementer says that no pacing delays what an acknowledgment permits."""
    return ics.get("pacing") is False


def has_room(ics: Mapping[str, Any], outstanding: int, octets: int) -> bool:
    """Whether a bound of the implementation's own on what is outstanding leaves room for more."""
    most = ics.get("outstanding_octets", 0)
    return not most or outstanding + octets <= most


def answer_window(m: Moment, ics: Mapping[str, Any]) -> float:
    """Seconds after an acknowledgment within which to look for the answer to it.

    Pacing spreads a window over a smoothed round trip, which may be as long as the longest one, or
    for as long as it has been seen to pause.
    """
    if acts_at_once(ics):
        return max(SLUGGISH_S, ROUND_TRIP_SHARE * m.rtt)
    return max(SLUGGISH_S, ROUND_TRIP_SHARE * m.longest_rtt, m.pause)


def reaction(m: Moment, answer: Sent | None, ics: Mapping[str, Any], error: float) -> Reaction:
    """How soon ``answer``, None when there is none, followed an acknowledgment.

    Args:
        m: the acknowledgment.
        answer: what was sent in answer to it.
        ics: the conformance statement; with pacing, anything within a round trip is at once, and
            when nothing is said of pacing, it is unclear.
        error: seconds by which recorded times may be wrong.
    """
    if answer is None:
        return "late"
    delay = answer.time - m.ack.time
    if delay <= REACTION_S + error:
        return "at once"
    if not acts_at_once(ics):
        paced = bool(ics.get("pacing", False))
        within = delay < answer_window(m, ics)
        return ("at once" if paced else "unclear") if within else "late"
    return "late" if error <= EXACT_S or delay > SLUGGISH_S else "unclear"


def disturbed_at(episode: Episode) -> float:
    """When a timer may first have expired within an episode; infinity when none can have.

    With SACK, a retransmission timeout soon after an arrival looks like RACK's reordering timer,
    and one that coincides with an arrival looks as if that had caused it; either repeats what was
    retransmitted before, or comes without a cause. An episode that begins with an acknowledgment of
    new data continues an earlier one whose end a timeout hid, one that is doubtful may be none or
    continue another, and one that begins with another duplicate than the third (unless so soon that
    pacing must have put it off), or with what reports nothing, or late with less than three
    segments reported or not right after a report, or so late that a timeout may have met even the
    third report, may have begun with a timeout: minus infinity.
    """
    trigger = episode.trigger
    if trigger is not None and (
        trigger.advance
        or episode.doubtful
        or episode.overdue
        or (episode.late and not _is_prompted(episode.first))
        or not (trigger.duplicates == DUPLICATE_THRESHOLD or trigger.sacked or _put_off(episode))
        or not (trigger.duplicate or trigger.newly_sacked)
    ):
        return -math.inf
    return timer_within(episode)


def _put_off(episode: Episode) -> bool:
    """Whether it met a later duplicate than the third, and no timer can have expired."""
    trigger = episode.trigger
    return episode.soon and trigger is not None and trigger.duplicates > DUPLICATE_THRESHOLD


def _is_prompted(first: Sent) -> bool:
    """Whether three duplicates, or as much as they report, came right before a retransmission."""
    return first.since_arrival <= PROMPT_S and is_evidence(first)


def is_evidence(first: Sent) -> bool:
    """Whether three duplicates, or as much as they would report, preceded a retransmission."""
    if not first.sacked:
        return first.duplicates >= DUPLICATE_THRESHOLD
    enough = octets(first.sacked) > (DUPLICATE_THRESHOLD - 1) * first.length
    return enough or len(first.sacked) >= DUPLICATE_THRESHOLD


def timer_within(episode: Episode) -> float:
    """When a timer may first have expired after an episode's beginning; infinity when none can."""
    repeated: set[int] = set()
    for sent in episode.retransmissions:
        if sent.time >= episode.timer:
            return sent.time
        # A timeout repeats the earliest data (RFC 6298 rule 5.4).
        unasked = sent.timed and sent.start <= sent.possible[1] and sent is not episode.first
        if sent.start in repeated or unasked:
            return sent.time
        repeated.add(sent.start)
    return math.inf


def read_moments(flow: Flow, episodes: Sequence[Episode]) -> Iterator[Moment]:
    """The moments of a flow, in order; ``episodes`` are its recovery episodes."""
    rtt, measured = minimum_rtt(flow), measurements(flow)
    running = {ack: episode for episode in episodes for ack in episode.acks}
    triggered = {episode.first: episode for episode in episodes}
    restarts = {sent for episode in episodes for sent in episode.restarts}
    disturbances = {episode: disturbed_at(episode) for episode in episodes}
    fast_recover = recover = reach = -1
    progress = 0.0
    last_advance: Ack | None = None
    repeats = informative = 0
    reordered, pure, retransmitted = False, True, False
    first_repair: float | None = None
    window_edge = shadow = resent = 0
    partially: set[Episode | None] = set()
    met: tuple[object, ...] = ()
    situation: Situation
    counts: tuple[object, ...] = ()
    run: Run
    for event in flow.until_reset:
        if isinstance(event, Sent):
            if not event.flight:
                progress = event.time
            if event.retransmission:
                retransmitted = True
                resent = max(resent, event.end)
                shadow = max(shadow, event.end)
                first_repair = event.time if first_repair is None else first_repair
            episode = triggered.get(event)
            if episode is not None and disturbances[episode] > -math.inf:
                recover = max(recover, episode.recover)
                if episode.fast:
                    fast_recover = max(fast_recover, episode.recover)
            if episode is not None or event in restarts:
                reach = max(reach, event.max)
        elif isinstance(event, Ack):
            advances = event.acceptable and event.advance > 0
            if event.acceptable and not advances and event.flight:
                repeats += 1
                pure = pure and event.duplicate and event.dsack is None
                informative += event.newly_sacked > 0
            if event.acceptable:
                window_edge = max(window_edge, event.window_edge)
            episode = running.get(event)
            trips = measured.before(event.packet.number)
            now = (
                rtt, max(trips.largest, trips.echoed), timed_rtt(flow, event.time),
                episode, fast_recover, recover, reach, reordered, shadow,
                episode is not None and event.time > disturbances[episode], resent,
                longest_pause(flow, event.packet.number),
            )  # fmt: skip
            if now != met:
                met, situation = now, Situation(*now)
            counted = progress, last_advance, repeats, pure, informative, window_edge
            if counted != counts:
                counts, run = counted, Run(*counted)
            yield Moment(event, situation, run)
            if episode is not None and event is episode.end:
                shadow = max(shadow, event.max)
            if event.dsack is not None or event.duplicates * largest_segment(flow) > event.flight:
                reordered = True
            if advances:
                late = repeats > 0 and not retransmitted
                mended_at = event.time if first_repair is None else first_repair
                early = first_repair is not None and event.time - mended_at < ROUND_TRIP_SHARE * rtt
                reordered = reordered or late or early
                last_advance = event
                further = episode is not None and episode.fast and episode in partially
                if not further or (episode is not None and event is episode.end):
                    progress = event.time
                partially.add(episode)
                repeats = 0
                # RFC 6675 section 2: a duplicate as well, though the number moves.
                informative = int(event.newly_sacked > 0)
                pure, retransmitted, first_repair = True, False, None


def may_be_tail_probe(sent: Sent, ics: Mapping[str, Any]) -> bool:
    """Whether a retransmission may be a tail loss probe (RFC 8985 section 7.3).

    That repeats the segment sent last, be it reported held or not. Its timer may have been started
    before the latest arrival and expire soon after it by chance.
    """
    # Options that the first transmission did not carry take room from the segment.
    tail = sent.una < sent.start and sent.end + options_length(sent.packet) >= sent.max
    by_timer = sent.since_arrival > AT_ONCE_S and sent.transmission == 2
    return bool(ics.get("tlp", True)) and tail and by_timer
