"""Every packet in every state, held against the specification's state table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
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
STATES = {state.title: state for state in State}
CSN = 0x0009_8765
OWN, ISS, PEER_ISS = 0x7777_1234, 5000, 900_000
C, A, R, FIN = (int(flag) for flag in (Flags.C, Flags.A, Flags.R, Flags.FIN))

SITUATIONS = (
    *((state, "plain") for state in State),
    (State.IDLE, "deaf"),
    (State.IDLE, "known"),
    (State.IDLE, "full"),
    (State.OUTGOING_RELEASE, "nameless"),
    (State.READY, "complete but for the acknowledgment"),
    (State.READY, "caller, complete but for the acknowledgment"),
    (State.READY, "complete"),
)


def newer(left: int, right: int) -> bool:
    """Section 2, in other words than the reference's."""
    return left != right and (left - right) % 2**32 < 2**31


class Situation:
    """An endpoint brought into a state, and what the table's conditions mean in it."""

    def __init__(self, script: Any, state: State, kind: str) -> None:
        self.full = kind == "full"
        settings = {"max_connections": 1} if self.full else {}
        self.script = script(listening=kind != "deaf", **settings)
        self.state = state
        self.calls = kind.startswith("caller")
        self.complete = "complete" in kind
        self.told = kind == "complete"
        self.listening = kind != "deaf"
        self.known = kind == "known"
        if self.known or self.full:
            self.script.ready()
            self.script.arrive(self.script.end(flags=A))
            assert self.script.state is State.IDLE
            if self.full:
                self.script.arrive(self.script.begin(sport=4001, csn=CSN + 1))
        elif kind == "nameless":
            self.script.call(b"data")
            self.script.connection.abort(0.0)
            self.script.flush()
        elif self.calls:
            self.script.called()
        else:
            self.script.enter(state)
        if self.complete:
            self.script.connection.write(b"last")
            self.script.connection.close()
            self.script.arrive(self.script.fin(0, b"theirs"))
            assert self.script.connection.peer_has_closed and not self.script.connection.is_over
        if self.told:
            self.script.arrive(self.script.stat(1, 1))
            assert self.script.connection.succeeded
        self.script.endpoint.take_events()
        nameless = kind == "nameless" or state in (State.IDLE, State.OUTGOING)
        self.peer_csn = None if nameless else CSN

    def row(self, packet: Packet) -> Row | None:
        """The row of the table that applies; None when the tag is wrong."""
        data = (Sd, Sdp, Poll, Stat, Ustat)
        if isinstance(packet, data) and self.peer_csn is not None and packet.tag != CSN & 0xFFFF:
            return None
        answers_us = isinstance(packet, Bgak) and packet.peer_csn == OWN
        if answers_us and self.state is State.OUTGOING and packet.n_r not in (ISS, ISS + 1):
            return None  # section 5.1; the data of the BEGIN is the only SD
        if answers_us and self.state is State.INCOMING and packet.n_r != ISS:
            return None  # section 5.2
        cell = [r for r in TABLE if (r.state, r.packet) == (self.state.title, packet.type.name)]
        return next(row for row in cell if self.holds(row.when, packet))

    def holds(self, when: str, packet: Any) -> bool:
        """Whether a condition of the table holds, read from the specification alone."""
        if when == "":
            return True
        if isinstance(packet, Begin):
            return {
                "version other than 1": packet.version != 1,
                "nobody listens": not self.listening,
                "no resources": self.full,
                "peer known and CSN newer": self.known and newer(packet.csn, CSN),
                "peer's CSN": packet.csn == CSN,
                "newer CSN than the peer's": self.peer_csn is not None and newer(packet.csn, CSN),
            }[when]
        if isinstance(packet, Bgak):
            ours, asks = packet.peer_csn == OWN, bool(packet.flags & C)
            return {
                "own CSN as recipient, C flag": ours and asks,
                "own CSN as recipient": ours,
                "own CSN as recipient, peer's CSN not known": ours and self.peer_csn is None,
                "both CSNs right": ours and packet.csn == CSN,
                "both CSNs right, C flag": ours and packet.csn == CSN and asks,
                "own CSN as recipient, newer CSN of the sender": ours and newer(packet.csn, CSN),
            }[when]
        if isinstance(packet, Bgrej | Endak):
            assert when == "own CSN as recipient"
            return packet.peer_csn == OWN
        assert isinstance(packet, End)
        reflected, aborts = bool(packet.flags & R), bool(packet.flags & A)
        both = packet.csn == CSN and packet.peer_csn == OWN
        both = (both and self.peer_csn is not None) or (both and self.state is State.IDLE)
        if self.peer_csn is None:
            plain = packet.peer_csn == OWN
        elif self.state is State.INCOMING:
            plain = both or (packet.csn == CSN and packet.peer_csn == 0)
        else:
            plain = both
        covers = self.complete and packet.n_r == ISS + 1
        return {
            "R flag": reflected,
            "valid (section 5.6), no R flag": plain and not reflected,
            "valid (section 5.6), R flag": both and reflected,
            "valid (section 5.6)": plain and not reflected,
            "R flag, only the tag known":
                reflected and packet.csn == 0 and packet.peer_csn == OWN & 0xFFFF,
            "valid, A flag": plain and aborts and not reflected,
            "valid, own FIN below N(R), peer's FIN delivered":
                plain and not reflected and not aborts and covers,
            "valid": plain and not reflected,
        }[when]  # fmt: skip

    def check(self, packet: Packet) -> Row | None:
        """Let ``packet`` arrive and compare answer and state with the table."""
        row = self.row(packet)
        before = self.variables()
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
            assert row.next in ("as there", following.title), row
        self.done(row, packet, answers, before)
        return row

    def done(self, row: Row, packet: Any, answers: list[Packet], before: Any) -> None:
        script = self.script
        after = script.kept
        own_data = [item for item in answers if isinstance(item, Sd | Sdp | Poll)]
        control = [item for item in answers if not isinstance(item, Sd | Sdp | Poll)]

        def bgak(flags: int, csn: int | None = None, n_r: int | None = None) -> None:
            (answer,) = control
            assert isinstance(answer, Bgak) and answer.flags == flags
            assert (answer.sport, answer.dport) == (packet.dport, packet.sport)
            assert answer.tag == answer.csn & 0xFFFF
            assert answer.peer_csn == (csn if csn is not None else packet.csn)
            assert n_r is None or answer.n_r == n_r

        def endak() -> None:
            (answer,) = control
            assert answer == Endak(
                packet.dport, packet.sport, packet.peer_csn & 0xFFFF, 0, packet.csn
            )

        # Section 5.5: who has been told of success is told nothing more.
        failed = after is not None and (after.failure is None if self.told else after.failure)
        match row.do:
            case "discard" | "nothing more is to be done" | "forget the connection":
                assert answers == []
                if row.do == "discard":
                    assert self.variables() == before
            case "send BGREJ, reason 4" | "send BGREJ, reason 3" | "send BGREJ, reason 5":
                reason = int(row.do[-1])
                assert answers == [Bgrej(packet.dport, packet.sport, 0, 0, reason, packet.csn)]
                assert self.variables() == before
            case "take the data, send BGAK":
                taken = bool(packet.data or packet.flags & FIN)
                bgak(0, n_r=packet.iss + taken & PACKET_MASK)
                assert after.read() == packet.data
            case "hold the data, send BGAK with C":
                bgak(C, n_r=packet.iss)
                assert after.read() == b""
            case "treat as in state idle, but ask in any case; what is pending stays":
                bgak(C, n_r=packet.iss)
                assert after.csn != OWN
                own = {"csn": CSN, "peer_csn": OWN, "n_r": ISS}
                assert script.arrive(script.bgak(**own)) == []
                assert script.state is State.READY and script.connection.csn == OWN
            case "treat as in state idle":
                taken = bool(packet.data or packet.flags & FIN)
                bgak(0, n_r=packet.iss + taken & PACKET_MASK)  # the peer is known by now
                assert script.state is State.READY
            case "send END with A and R":
                (answer,) = answers
                if isinstance(packet, Bgak):
                    expected = (packet.peer_csn & 0xFFFF, packet.peer_csn, packet.csn)
                else:
                    expected = (0, 0, packet.tag)
                tag, csn, peer_csn = expected
                ports = (packet.dport, packet.sport)
                assert answer == End(*ports, tag, A | R, 0, Reason.NO_CONNECTION, csn, peer_csn)
                assert self.variables() == before
            case "send ENDAK" | "send ENDAK, forget the connection":
                endak()
            case "send ENDAK, report failure":
                endak()
                assert failed
            case "send ENDAK, report success":
                endak()
                assert after.succeeded
            case "report failure":
                assert answers == [] and failed
            case "send BGAK with C":
                bgak(C, n_r=PEER_ISS if self.state is State.INCOMING else packet.iss,
                     csn=CSN if self.state is State.INCOMING else None)  # fmt: skip
                assert self.variables() == before
            case "send a challenge":
                bgak(C, csn=CSN)
            case "send BGAK":
                bgak(0, csn=CSN)
            case "learn the peer's numbers, send BGAK":
                bgak(0)
                assert any(isinstance(item, Poll | Sdp) for item in own_data)
            case "learn the peer's numbers":
                assert control == []
            case "send END with A to it":
                (answer,) = answers
                assert isinstance(answer, End) and (answer.flags, answer.reason) == (A, 1)
                assert (answer.csn, answer.peer_csn) == (OWN, packet.csn)
            case "send END with A, reason 2, to it; report failure":
                (answer,) = answers
                assert isinstance(answer, End) and answer.flags == A and answer.reason == 2
                assert (answer.csn, answer.peer_csn) == (OWN, packet.csn)
                assert failed
            case "hand over what is held; send BGAK if C flag":
                if packet.flags & C:
                    bgak(0)
                else:
                    assert control == []
            case "hold if numbered below ISS + 4":
                assert answers == [] and after.read() == b""
            case "hold if numbered below ISS + 4; send BGAK with C":
                bgak(C, csn=CSN, n_r=PEER_ISS)
                assert after.read() == b""
            case "section 6.2":
                assert all(isinstance(item, Ustat) for item in control) and len(control) <= 1
            case "sections 6.2 and 6.3" | "section 6.3":
                stats = [item for item in control if isinstance(item, Stat)]
                assert stats and len(stats) >= len(control) - 1
                assert stats[0].n_ps == packet.n_ps and stats[0].timestamp == packet.timestamp
            case "section 6.4" | "section 6.5":
                assert not [item for item in control if not isinstance(item, End)]
            case _:
                raise AssertionError(f"the test does not know what {row.do!r} means")

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
                sorted(item.early),
            )
            for key, item in live.items()
        ]  # fmt: skip


def test_the_code_and_the_specification_have_the_same_table(stp: Any) -> None:
    table = stp().endpoint.table
    ours = [
        (state.title, kind.name, row.when, row.do, row.next.title if row.next else "as there")
        for state in (
            State.IDLE,
            State.OUTGOING,
            State.INCOMING,
            State.READY,
            State.OUTGOING_RELEASE,
        )
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
    csns = (CSN, CSN + 1, CSN - 1, 0)
    owns = (OWN, OWN + 1, 0, OWN & 0xFFFF)
    for version, csn, flags, data in product((1, 2), csns, (0, FIN), (b"", b"data")):
        yield peer.begin(version=version, csn=csn, flags=flags, data=data)
    for csn, own, flags in product(csns, owns, (0, C)):
        yield peer.bgak(csn=csn, peer_csn=own, flags=flags)
    for own in owns:
        yield peer.bgrej(peer_csn=own)
        yield peer.endak(peer_csn=own)
    for csn, own, flags, n_r in product(csns, owns, (0, A, R, A | R), (ISS, ISS + 1)):
        yield peer.end(csn=csn, peer_csn=own, flags=flags, n_r=n_r)
    for tag, at in product((CSN & 0xFFFF, 1), (0, 1, 4, 5000)):
        yield peer.sd(at, tag=tag)
        yield peer.sdp(at, 1, tag=tag)
        yield peer.poll(at, 1, tag=tag)
        yield peer.stat(at, 0, tag=tag)
        yield peer.ustat(at, at, at + 1, tag=tag)


def test_every_row_of_the_table_is_what_the_endpoint_does(stp: Any) -> None:
    packets = list(stimuli(stp))
    seen = set()
    for (state, kind), packet in product(SITUATIONS, packets):
        row = Situation(stp, state, kind).check(packet)
        seen.add(row)
    assert set(TABLE) <= seen, [row for row in TABLE if row not in seen]


U16, U24, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**24 - 1), st.integers(0, 2**32 - 1)
TAGS = st.one_of(st.just(CSN & 0xFFFF), U16)
CSNS = st.one_of(st.sampled_from([CSN, CSN + 1, CSN - 1, OWN, OWN & 0xFFFF, 0]), U32)
NUMBERS = st.one_of(
    st.integers(PEER_ISS - 4, PEER_ISS + 8), st.integers(ISS - 4, ISS + 8), st.just(0), U24
)
DATA = st.binary(max_size=8)
LISTS = st.lists(NUMBERS, max_size=6).map(tuple)
PORTS = (st.just(4000), st.just(9))
PACKETS = st.one_of(
    st.builds(Begin, *PORTS, TAGS, st.sampled_from([0, FIN]), NUMBERS, U24, CSNS,
              st.sampled_from([1, 1, 0, 15]), st.one_of(st.none(), U16), DATA),
    st.builds(Bgak, *PORTS, TAGS, st.sampled_from([0, C]), NUMBERS, NUMBERS, CSNS, CSNS, NUMBERS,
              st.one_of(st.none(), U16)),
    st.builds(Bgrej, *PORTS, TAGS, st.just(0), st.integers(0, 255), CSNS),
    st.builds(End, *PORTS, TAGS, st.sampled_from([0, A, R, A | R]), NUMBERS, st.integers(0, 255),
              CSNS, CSNS),
    st.builds(Endak, *PORTS, TAGS, st.just(0), CSNS),
    st.builds(Sd, *PORTS, TAGS, st.sampled_from([0, FIN]), NUMBERS, DATA),
    st.builds(Sdp, *PORTS, TAGS, st.sampled_from([0, FIN]), NUMBERS, U24, U32, DATA),
    st.builds(Poll, *PORTS, TAGS, st.just(0), NUMBERS, U24, U32),
    st.builds(Stat, *PORTS, TAGS, st.just(0), NUMBERS, NUMBERS, st.one_of(st.just(0), U24), U32,
              LISTS),
    st.builds(Ustat, *PORTS, TAGS, st.just(0), NUMBERS, NUMBERS, st.tuples(NUMBERS, NUMBERS)),
)  # fmt: skip


@pytest.mark.parametrize(("state", "kind"), SITUATIONS)
@settings(max_examples=60)
@given(packet=PACKETS)
def test_any_fields_are_answered_as_the_table_says(
    stp: Any, state: State, kind: str, packet: Packet
) -> None:
    Situation(stp, state, kind).check(packet)
