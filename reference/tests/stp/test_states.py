"""Every packet in every state, held against the specification's state table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest
from bentpipe_reference.stp.packets import (
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
    Type,
    Ustat,
)
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_spec.document import Row, state_table
from hypothesis import given, settings
from hypothesis import strategies as st

TABLE = state_table("stp")
CSN = 0x0009_8765
OWN, ISS, PEER_ISS = 0x7777_1234, 5000, 900_000
A, R, V, FIN = (int(flag) for flag in (Flags.A, Flags.R, Flags.V, Flags.FIN))
GOOD, USED, OTHERS = b"good good good", b"used used used", b"a cookie for another address"
"""What stands for a cookie of the endpoint in a BEGIN, until it arrives."""

PEER = ("peer", 1)

SITUATIONS = (
    *((state, "plain") for state in State),
    (State.IDLE, "deaf"),
    (State.IDLE, "used"),
    (State.IDLE, "full"),
    (State.OUTGOING, "unknown"),
    (State.OUTGOING, "asked for the last time"),
    (State.OUTGOING_RELEASE, "nameless"),
    (State.READY, "deaf"),
    (State.READY, "full"),
    (State.READY, "complete but for the acknowledgment"),
    (State.READY, "caller, complete but for the acknowledgment"),
    (State.READY, "complete"),
)


class Situation:
    """An endpoint brought into a state, and what the table's conditions mean in it."""

    def __init__(self, script: Any, state: State, kind: str) -> None:
        self.full = kind == "full" and state is State.IDLE
        self.script = script(**({"max_connections": 1} if kind == "full" else {}))
        self.state = state
        self.calls = kind.startswith("caller") or state is State.OUTGOING
        self.complete = "complete" in kind
        self.told = kind == "complete"
        self.listening = kind != "deaf"
        self.last_time = kind == "asked for the last time"
        self.used = self.script.cookie()
        self.is_used = kind == "used" or (state is not State.IDLE and not self.calls)
        if kind == "used":
            self.script.arrive(self.script.begin(cookie=self.used))
            self.script.arrive(self.script.end(flags=A))
        elif self.full:
            begin = self.script.begin(sport=4001, cookie=self.script.cookie())
            assert self.script.arrive(begin)
        elif kind == "nameless":
            self.is_used = False
            self.script.call(b"data")
            self.script.connection.abort(0.0)
            self.script.flush()
        elif kind == "unknown":
            self.script.call(b"data", known=False)
        elif state is State.OUTGOING:
            self.script.call(b"data")
        elif self.calls:
            self.script.called()
        elif state is not State.IDLE:
            self.script.ready(cookie=self.used)
        if state is State.OUTGOING_RELEASE and kind == "plain":
            self.script.connection.abort(0.0)
            self.script.flush()
        if self.last_time:
            for _ in range(5):
                self.script.arrive(self.script.bgrej(reason=6, peer_csn=self.csn, cookie=GOOD))
        if self.complete:
            self.script.connection.write(b"last")
            self.script.connection.close()
            self.script.arrive(self.script.fin(0, b"theirs"))
            assert self.script.connection.peer_has_closed and not self.script.connection.is_over
        if self.told:
            self.script.arrive(self.script.stat(1, 1))
            assert self.script.connection.succeeded
        if not self.listening:
            self.script.endpoint.unlisten(9)
        assert self.script.state is state
        self.script.endpoint.take_events()
        nameless = kind == "nameless" or state in (State.IDLE, State.OUTGOING)
        self.peer_csn = None if nameless else CSN
        self.own = self.csn

    @property
    def csn(self) -> int:
        """Our CSN, after any calls anew."""
        live = self.script.endpoint.connections.get((PEER, 4000, 9))
        return OWN if live is None else live.csn

    def prepared(self, packet: Packet) -> Packet:
        """The packet with a real cookie in the place of its name, and our real CSN and ISS."""
        if isinstance(packet, Begin) and packet.cookie is not None:
            cookies = {
                GOOD: self.script.cookie(), USED: self.used,
                OTHERS: self.script.cookie(("peer", 2)),
            }  # fmt: skip
            return replace(packet, cookie=cookies.get(packet.cookie, packet.cookie))
        if isinstance(packet, Bgak | Bgrej | Endak | End) and packet.peer_csn == OWN:
            return replace(packet, peer_csn=self.own)
        return packet

    def row(self, packet: Packet, name: bytes | None, state: State) -> Row | None:
        """The row of the table that applies; None when the tag is wrong."""
        data = (Sd, Sdp, Poll, Stat, Ustat)
        if isinstance(packet, data) and self.peer_csn is not None and packet.tag != CSN & 0xFFFF:
            return None
        cell = [r for r in TABLE if (r.state, r.packet) == (state.title, packet.type.name)]
        return next(row for row in cell if self.holds(row.when, packet, name))

    def holds(self, when: str, packet: Any, name: bytes | None) -> bool:
        """Whether a condition of the table holds, read from the specification alone."""
        if when == "":
            return True
        if isinstance(packet, Begin):
            used = name == USED and self.is_used
            good = name == GOOD or (name == USED and not self.is_used)
            large = len(packet.data) > self.script.endpoint.config.own_max_sd
            ours = packet.version == 2 and self.listening and not large
            return {
                "version other than 2": packet.version != 2,
                "nobody listens": not self.listening,
                "cookie used": used,
                "cookie missing or not good": not good,
                "no resources": self.full,
                "more data than MaxSD": large,
                "peer's CSN": packet.csn == self.peer_csn,
                "peer's CSN, and the peer called": packet.csn == self.peer_csn and not self.calls,
                "would open in state 1": ours and good and not self.full,
            }[when]
        if isinstance(packet, Bgak | Bgrej | Endak):
            ours = packet.peer_csn == self.own
            return {
                "CSN of the recipient not own": lambda: not ours,
                "own CSN as recipient": lambda: ours,
                "N(R) below ISS or above VT(S)": lambda: not self.sent(packet.n_r),
                "reason 6, with a cookie, not the sixth": lambda: (
                    packet.reason == 6 and packet.cookie is not None and not self.last_time),
            }[when]()  # fmt: skip
        if isinstance(packet, Poll | Sdp):
            assert when == "N(PS) 0, or CSN not the peer's"
            return packet.n_ps == 0 or packet.csn != CSN
        if isinstance(packet, Stat):
            return self.is_invalid(packet) or not self.answers_poll(packet)
        if isinstance(packet, Ustat):
            return self.is_invalid(packet)
        assert isinstance(packet, End)
        reflected, aborts = bool(packet.flags & R), bool(packet.flags & A)
        if reflected:
            valid = packet.peer_csn == self.own and packet.csn in (0, self.peer_csn or 0)
        elif self.peer_csn is None:
            valid = packet.peer_csn == self.own
        else:
            named = packet.peer_csn == self.own or (aborts and packet.peer_csn == 0)
            valid = packet.csn == CSN and named
        return {
            "R flag": reflected,
            "not valid": not valid,
            "A flag": aborts,
            "N(R) above own FIN, peer's FIN delivered":
                self.complete and packet.n_r == ISS + 1,
        }[when]  # fmt: skip

    @property
    def sender(self) -> Any:
        return self.script.connection.outgoing.sender

    def sent(self, n_r: int) -> bool:
        """Whether N(R) is from VT(A) to VT(S)."""
        return bool((n_r - self.sender.vt_a) % 2**24 <= self.sender.vt_s - self.sender.vt_a)

    def answers_poll(self, stat: Stat) -> bool:
        """STP-DT-007, STP-DT-023: N(PS) is that of a POLL not older than the last one answered."""
        if stat.n_ps == 0:
            return not stat.elements
        return bool(self.sender.vt_pa <= stat.n_ps <= self.sender.vt_ps)

    def is_invalid(self, report: Stat | Ustat) -> bool:
        """STP-DT-023, STP-PF-011, STP-PF-013."""
        if not self.sent(report.n_r):
            return True
        if not report.elements:
            return False
        offsets = [(item - report.n_r) % 2**24 for item in report.elements]
        rising = len(offsets) > 1 and all(a < b for a, b in pairwise(offsets))
        last = (report.n_r - self.sender.vt_a) % 2**24 + offsets[-1]
        credit = (report.n_mr - report.n_r) % 2**24
        inside = offsets[-1] <= credit <= 2**23 and last <= self.sender.vt_s - self.sender.vt_a
        return not (rising and inside)

    def check(self, packet: Packet) -> Row | None:
        """Let ``packet`` arrive and compare answer and state with the table."""
        name = packet.cookie if isinstance(packet, Begin) else None
        packet = self.prepared(packet)
        row = self.row(packet, name, self.state)
        before, connection = self.variables(), self.script.kept
        answers = self.script.arrive(packet)
        if row is None:
            assert answers == [] and self.variables() == before
            return None
        following = self.script.state
        if following is State.OUTGOING_RELEASE and self.state is State.READY:
            # STP-CC-025: what completed the connection makes the caller release at once.
            assert self.calls
            assert any(isinstance(answer, End) and not answer.flags & A for answer in answers)
        else:
            assert row.next == following.title, row
        do = row.do
        if do.startswith("report failure unless complete; "):
            assert connection is not None and bool(connection.failure) != self.told
        if do.endswith("as in state 1"):
            there = self.row(packet, name, State.IDLE)
            assert there is not None
            do = there.do
        self.done(do, packet, answers, before, connection)
        return row

    def done(
        self, do: str, packet: Any, answers: list[Packet], before: Any, connection: Any
    ) -> None:
        script = self.script
        own_data = [item for item in answers if isinstance(item, Sd | Sdp | Poll)]
        control = [item for item in answers if not isinstance(item, Sd | Sdp | Poll)]
        ports = (packet.dport, packet.sport)

        def bgak(**expected: int) -> None:
            (answer,) = control
            assert isinstance(answer, Bgak) and answer.flags == 0 and (answer.max_sd or 0) >= 512
            assert (answer.sport, answer.dport, answer.peer_csn) == (*ports, packet.csn)
            assert answer.tag == answer.csn & 0xFFFF
            assert {name: getattr(answer, name) for name in expected} == expected
            assert script.endpoint._cookies.is_good(PEER, answer.cookie, script.now)

        def endak() -> None:
            tag = packet.peer_csn & 0xFFFF
            assert control == [Endak(*ports, tag, 0, packet.csn)]

        # Section 9: who has been told of success is told nothing more.
        failed = connection is not None and bool(connection.failure) != self.told
        match do:
            case "discard" | "nothing more":
                assert answers == []
                if do == "discard":
                    assert self.variables() == before
            case "send BGREJ, reason 4" | "send BGREJ, reason 3" | "send BGREJ, reason 5":
                assert answers == [Bgrej(*ports, 0, 0, int(do[-1]), packet.csn)]
                assert self.variables() == before
            case "send BGREJ, reason 6, with a cookie":
                (answer,) = answers
                assert isinstance(answer, Bgrej) and (answer.max_sd or 0) >= 512
                assert (answer.tag, answer.reason, answer.peer_csn) == (0, 6, packet.csn)
                assert script.endpoint._cookies.is_good(PEER, answer.cookie, script.now)
                assert self.variables() == before
            case "take the data, send BGAK with a cookie":
                taken = bool(packet.data or packet.flags & FIN)
                bgak(n_r=packet.iss + taken & PACKET_MASK)
                assert script.connection is not connection
                assert script.connection.read() == packet.data
            case "send BGAK with a cookie":
                bgak(csn=self.own)
                assert self.variables() == before
            case "send END with A and R":
                (answer,) = answers
                own = packet.peer_csn if isinstance(packet, Bgak) else 0
                numbers = (own & 0xFFFF, A | R, 0, Reason.NO_CONNECTION, own, packet.csn)
                assert answer == End(*ports, *numbers)
                assert self.variables() == before
            case "send ENDAK":
                endak()
            case "send ENDAK, report failure" | "send ENDAK, report failure unless complete":
                endak()
                assert failed
            case "send ENDAK, report success":
                endak()
                assert connection.succeeded
            case "report failure" | "report failure unless complete":
                assert answers == [] and failed
            case "learn the peer's numbers and cookie; poll if SDs are unacknowledged":
                assert control == [] and connection.peer_csn == packet.csn
                asks = any(isinstance(item, Poll | Sdp) for item in own_data)
                assert asks or not self.sender.unacknowledged
            case "call anew":
                (answer,) = answers
                assert isinstance(answer, Begin) and answer.csn == self.csn != self.own
                assert (answer.cookie, answer.data) == (packet.cookie, b"data")
            case "section 6.2":
                assert all(isinstance(item, Ustat) for item in control) and len(control) <= 1
            case "sections 6.2 and 6.3" | "section 6.3":
                stats = [item for item in control if isinstance(item, Stat)]
                assert len(stats) >= len(control) - 1
                assert stats
                for stat in stats:
                    assert (stat.n_ps, stat.timestamp) == (packet.n_ps, packet.timestamp)
            case "section 6.4":
                assert not [item for item in control if not isinstance(item, End)]
            case _:
                raise AssertionError(f"the test does not know what {do!r} means")

    def variables(self) -> Any:
        """Everything of a connection that a discarded packet must leave alone."""
        live = self.script.endpoint.connections
        return [
            (
                key, item.state, item.csn, item.peer_csn, item.failure, item.succeeded,
                item.outgoing.sender.vt_s, item.outgoing.sender.vt_a, item.outgoing.sender.vt_ms,
                item.outgoing.sender.vt_ps, item.outgoing.sender.vt_pa,
                item.outgoing.sender.kept(), item.outgoing.sender.queued(),
                item.receiver and (item.receiver.vr_r, item.receiver.vr_h, item.receiver.vr_mr,
                                   item.receiver.held(), item.receiver.readable),
            )
            for key, item in live.items()
        ]  # fmt: skip


def test_the_code_and_the_specification_have_the_same_table(stp: Any) -> None:
    table = stp().endpoint.table
    ours = [
        (state.title, kind.name, row.when, row.do, row.next.title)
        for state in (State.IDLE, State.OUTGOING, State.READY, State.OUTGOING_RELEASE)
        for kind in (
            Type.BEGIN, Type.BGAK, Type.BGREJ, Type.END, Type.ENDAK, Type.SD, Type.SDP, Type.POLL,
            Type.STAT, Type.USTAT,
        )
        for row in table[state][kind]
    ]  # fmt: skip
    assert ours == [(row.state, row.packet, row.when, row.do, row.next) for row in TABLE]


def stimuli(script: Any) -> Iterator[Packet]:
    """Packets whose fields together make every condition of the table hold and fail."""
    peer = script()
    csns = (CSN, CSN + 1, 0)
    owns = (OWN, OWN + 1, 0)
    cookies = (None, GOOD, USED, OTHERS, b"neither one")
    for csn, flags, data, cookie in product(csns, (0, FIN), (b"", b"data"), cookies):
        yield peer.begin(csn=csn, flags=flags, data=data, cookie=cookie)
        yield peer.begin(version=1, csn=csn)
    for csn, flags, cookie in product(csns, (0, V), (GOOD, USED)):
        yield peer.begin(csn=csn, data=bytes(1500), cookie=cookie)
        yield peer.begin(csn=csn, flags=flags, cookie=cookie)
    for csn, own, n_r in product(csns, owns, (ISS - 1, ISS, ISS + 1, ISS + 2)):
        yield peer.bgak(csn=csn, peer_csn=own, n_r=n_r)
    for own, reason, cookie in product(owns, (3, 6), (None, b"a new one")):
        yield peer.bgrej(peer_csn=own, reason=reason, cookie=cookie)
        yield peer.endak(peer_csn=own)
    for csn, own, flags, n_r in product(csns, owns, (0, A, R, A | R), (ISS, ISS + 1)):
        yield peer.end(csn=csn, peer_csn=own, flags=flags, n_r=n_r)
    for tag, at, csn in product((CSN & 0xFFFF, 1), (0, 1, 4, 5000), (CSN, CSN + 1)):
        yield peer.sd(at, tag=tag)
        yield peer.sdp(at, 1, tag=tag, csn=csn)
        yield peer.poll(at, 1, tag=tag, csn=csn)
        yield peer.sdp(at, 0, tag=tag, csn=csn)
        yield peer.poll(at, 0, tag=tag, csn=csn)
        yield peer.stat(at, 0, tag=tag)
        yield peer.stat(at, 1, [at], tag=tag)
        yield peer.ustat(at, at, at + 1, tag=tag)


@pytest.mark.long
def test_every_row_of_the_table_is_what_the_endpoint_does(stp: Any) -> None:
    packets = list(stimuli(stp))
    seen = set()
    for (state, kind), packet in product(SITUATIONS, packets):
        row = Situation(stp, state, kind).check(packet)
        seen.add(row)
    assert set(TABLE) <= seen, [row for row in TABLE if row not in seen]


U16, U24, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**24 - 1), st.integers(0, 2**32 - 1)
TAGS = st.one_of(st.just(CSN & 0xFFFF), U16)
CSNS = st.one_of(st.sampled_from([CSN, CSN + 1, OWN, 0]), U32)
NUMBERS = st.one_of(
    st.integers(PEER_ISS - 4, PEER_ISS + 8), st.integers(ISS - 4, ISS + 8), st.just(0), U24
)
DATA = st.one_of(st.binary(max_size=8), st.just(bytes(1500)))
COOKIES = st.one_of(
    st.none(), st.sampled_from([GOOD, USED, OTHERS]), st.binary(min_size=8, max_size=32)
)
LISTS = st.lists(NUMBERS, max_size=6).map(tuple)
SMALL = st.one_of(st.integers(0, 3), U24)
MAX_SD = st.one_of(st.none(), U16)
PORTS = (st.just(4000), st.just(9))
FINS = st.sampled_from([0, FIN])
VERSIONS = st.sampled_from([1, 0, 15])
PACKETS = st.one_of(
    st.builds(Begin, *PORTS, TAGS, st.integers(0, 3), NUMBERS, U24, CSNS, st.just(2), MAX_SD,
              COOKIES, DATA),
    st.builds(Begin, *PORTS, TAGS, FINS, NUMBERS, U24, CSNS, VERSIONS),
    st.builds(Bgak, *PORTS, TAGS, st.just(0), NUMBERS, NUMBERS, CSNS, CSNS, NUMBERS, MAX_SD,
              COOKIES),
    st.builds(Bgrej, *PORTS, TAGS, st.just(0), st.one_of(st.just(6), st.integers(0, 255)), CSNS,
              MAX_SD, COOKIES),
    st.builds(End, *PORTS, TAGS, st.sampled_from([0, A, R, A | R]), NUMBERS, st.integers(0, 255),
              CSNS, CSNS),
    st.builds(Endak, *PORTS, TAGS, st.just(0), CSNS),
    st.builds(Sd, *PORTS, TAGS, FINS, NUMBERS, DATA),
    st.builds(Sdp, *PORTS, TAGS, FINS, NUMBERS, SMALL, U32, CSNS, DATA),
    st.builds(Poll, *PORTS, TAGS, st.just(0), NUMBERS, SMALL, U32, CSNS),
    st.builds(Stat, *PORTS, TAGS, st.just(0), NUMBERS, NUMBERS, SMALL, U32, LISTS),
    st.builds(Ustat, *PORTS, TAGS, st.just(0), NUMBERS, NUMBERS, st.tuples(NUMBERS, NUMBERS)),
)  # fmt: skip


@pytest.mark.parametrize(("state", "kind"), SITUATIONS)
@settings(max_examples=60)
@given(packet=PACKETS)
def test_any_fields_are_answered_as_the_table_says(
    stp: Any, state: State, kind: str, packet: Packet
) -> None:
    Situation(stp, state, kind).check(packet)
