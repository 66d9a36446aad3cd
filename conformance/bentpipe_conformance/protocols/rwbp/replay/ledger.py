"""What left for the gateway, held against the account with it (section 9.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S, Packet
from bentpipe_conformance.protocols.rwbp.replay.account import (
    GENEROUS,
    LIFE_S,
    MEAN,
    OVERDRAWS,
    Account,
)
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import Link, Passed, Told


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a rule has been tried by.

    Attributes:
        packet: a packet that left, or after which none did.
        rules: the requirements whose wrong accounts would have acted otherwise.
        seconds: how long nothing left; 0 where a packet did.
    """

    packet: Packet
    rules: frozenset[str]
    seconds: float = 0.0


@dataclass(slots=True)
class Ledger:
    """What was found.

    Attributes:
        overdrawn: packets that left without credit, with the rules that their sender may have
            broken; RWBP-LC-002 where no wrong account explains all of them.
        withheld: where nothing left although something waited, there was credit, and the link was
            free, with the rules that may have been broken.
        waited: where nothing left, rightly, and a wrong account would have let it.
        used: packets that left, rightly, and a wrong account would not have let leave.
        prompt: packets that left as soon as a frame permitted it.
    """

    overdrawn: list[Entry] = field(default_factory=list)
    withheld: list[Entry] = field(default_factory=list)
    waited: list[Entry] = field(default_factory=list)
    used: list[Entry] = field(default_factory=list)
    prompt: list[Entry] = field(default_factory=list)


class _Reader:
    def __init__(self, link: Link[Flow], rate: float, slack: float) -> None:
        self.link = link
        self.ledger = Ledger()
        self._rate = rate
        self._slack = slack
        self._strict = Account(slack, lenient=False)
        self._lenient = Account(slack, lenient=True)
        self._generous = [rule(slack, lenient=True) for rule in GENEROUS]
        self._mean = [rule(slack, lenient=False) for rule in MEAN]
        self._consistent = [*self._generous, *self._mean]
        """The wrong accounts that permit everything that has left."""
        self._resisted = dict.fromkeys(GENEROUS, 0.0)
        """For how long in all each of them would have let leave what has not left."""
        self._free_at = 0.0
        self._quiet = link.began, link.flows[0].packets[0]
        self._opened: float | None = None
        self._mean_now: set[type[Account]] = set()

    @property
    def _accounts(self) -> Iterator[Account]:
        yield from (self._strict, self._lenient, *self._generous, *self._mean)

    def read(self) -> Ledger:
        link = self.link
        events: list[Told | Passed[Flow]] = [*link.told, *link.passed]
        for event in sorted(events, key=lambda item: item.packet.number):
            now = event.packet.time
            self._look_back(now)
            if isinstance(event, Told):
                shut = not self._lenient.permits(now)
                for account in self._accounts:
                    account.hear(event)
                self._opened = now if shut and self._strict.permits(now) else None
            else:
                self._leaves(event, now)
            self._quiet = now, event.packet
        self._look_back(link.ended)
        return self._attributed()

    def _leaves(self, passed: Passed[Flow], now: float) -> None:
        certain = not self._is_in_doubt(now)
        if certain:
            self._consistent = [item for item in self._consistent if item.permits(now)]
        if self._strict.permits(now):
            if self._opened is not None and now <= self._opened + AT_ONCE_S:
                self.ledger.prompt.append(Entry(passed.packet, frozenset()))
            self._opened = None
            rules = frozenset(item.broken for item in self._mean if not item.permits(now))
            if rules:
                self.ledger.used.append(Entry(passed.packet, rules))
        elif certain and not self._lenient.permits(now):
            self.ledger.overdrawn.append(Entry(passed.packet, frozenset()))
        for account in self._accounts:
            account.take(passed)
        if self._rate:
            self._free_at = now + 8 * len(passed.packet.data) / self._rate

    def _is_in_doubt(self, now: float) -> bool:
        """Whether a frame may have been processed in another order, or have come too early."""
        if not self._slack:
            return False
        if self._lenient.epoch is None and now < self.link.began + LIFE_S:
            return True  # what was granted before the trace
        return any(abs(told.packet.time - now) <= self._slack for told in self.link.told)

    def _look_back(self, now: float) -> None:
        """Nothing has left since the last event: should something have?"""
        since, packet = self._quiet
        least = AT_ONCE_S + 2 * self._slack
        begins = max(since, self._free_at)
        for first, last in self._waiting(begins, now):
            # How long nothing left that might have, by the true account and by the wrong ones.
            strict = self._permitted(self._strict, first, last)
            if strict > least and not self.ledger.overdrawn:
                self.ledger.withheld.append(Entry(packet, frozenset(), strict))
                self._mean_now |= {
                    type(item)
                    for item in self._mean if self._permitted(item, first, last) <= least
                }  # fmt: skip
            lenient = self._permitted(self._lenient, first, last)
            tempted = [
                item for item in self._generous
                if self._permitted(item, first, last) - lenient > least
            ]  # fmt: skip
            if tempted:
                rules = frozenset(item.broken for item in tempted)
                self.ledger.waited.append(Entry(packet, rules, last - first))
                for item in tempted:
                    self._resisted[type(item)] += last - first

    @staticmethod
    def _permitted(account: Account, first: float, last: float) -> float:
        """For how long an account permits a packet between two times without events."""
        if not account.permits(first):
            return 0.0
        return min(last, account.fresh_until()) - first

    def _waiting(self, first: float, last: float) -> Iterator[tuple[float, float]]:
        """When between two times some connection surely could send."""
        spans = sorted(
            (max(first, start), min(last, end))
            for flow in self.link.flows
            for start, end in self._could_send(flow)
            if start < last and end > first
        )
        reached = first
        for start, end in spans:
            begin = max(start, reached)
            if end > begin:
                yield begin, end
                reached = end

    def _could_send(self, flow: Flow) -> Iterator[tuple[float, float]]:
        """When a connection surely could send data, or had a SYN to answer."""
        opening = flow.opening
        if opening.own and opening.theirs and not opening.iut_calls:
            yield opening.theirs[0].time, opening.own[0].time
        elif opening.theirs and flow.service and not self.link.passed:
            yield opening.theirs[0].time, self.link.ended  # it is as if there were no IUT
        yield from _spans(flow.sender.ready, self.link.ended)

    def _attributed(self) -> Ledger:
        """Which wrong accounts agree with everything that has left, and with what has not."""
        ledger = self.ledger
        known = {type(item) for item in self._consistent}
        likely = {rule: self._resisted[rule] for rule in GENEROUS if rule in known - {OVERDRAWS}}
        generous = frozenset(
            rule.broken for rule, resisted in likely.items() if resisted == min(likely.values())
        )
        # Where nothing has ever left, no account of what has agrees better than another.
        mean = frozenset(rule.broken for rule in known & self._mean_now if self.link.passed)
        generous = generous or frozenset({"RWBP-LC-002"})
        mean = mean or frozenset({"RWBP-LC-008"})
        ledger.overdrawn = [replace(item, rules=generous) for item in ledger.overdrawn]
        ledger.withheld = [replace(item, rules=mean) for item in ledger.withheld]
        return ledger


def _spans(changes: Sequence[tuple[float, bool]], end: float) -> Iterator[tuple[float, float]]:
    """The times in which something holds that changes at these times."""
    for index, (time, holds) in enumerate(changes):
        if holds:
            yield time, changes[index + 1][0] if index + 1 < len(changes) else end


def read_ledger(link: Link[Flow], rate: float, slack: float) -> Ledger:
    """Hold what left by a link against the account with its gateway.

    Args:
        link: the link.
        rate: the link's rate in bit/s; 0 for none.
        slack: seconds by which the order of an arrival and a departure may be wrong.
    """
    return _Reader(link, rate, slack).read()
