"""STP traces told packet by packet, to ask a checker about exactly one situation.

SDs of either direction are counted from 0; times are seconds. The numbers on the wire wrap soon
after the handshake::

    story = StpStory().opened()
    story.tester(SD, 0).tester(SD, 2, after=0.01).iut(USTAT, 1, elements=(1, 2))
    assert story.verdicts("STP-PF-013") == {Verdict.PASS}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.story import BaseStory, ends
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import VERSION, Stp, build, build_datagram, dissect
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, MODULUS, on_wire, tag_of
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.protocols.stp.suite import SUITE

IUT_PORT, TESTER_PORT = 9, 40001
UDP_PORT = 9899

IUT_ISS, TESTER_ISS = MODULUS - 2, MODULUS - 3
IUT_CSN, TESTER_CSN = CSN_MODULUS - 1, 0x1234_5678
IUT_TAG = tag_of(IUT_CSN)

COOKIES = tuple(bytes([number]) * 16 for number in range(1, 9))
"""Cookies of the implementation, in the order in which it makes them."""

TESTER_COOKIES = tuple(bytes([0xF0 + number]) * 16 for number in range(8))
"""Cookies of the tester."""

CLAIMS: Mapping[str, Any] = {
    "active_open": True,
    "fifo": True,
    "rate_limit": False,
    "initial_window_sds": 4,
    "keep_alive_s": 600,
    "path_class": "geo",
}
"""The conformance statement of the implementation in the stories."""

PASS, FAIL, NOTHING = {Verdict.PASS}, {Verdict.FAIL}, set[Verdict]()
"""What a checker may say of a situation."""


@dataclass(kw_only=True)
class StpStory(BaseStory):
    """Packets between the tester and the implementation, as captured at the latter's side.

    Attributes:
        credit: SDs each side permits the other, as a count from ISS.
        max_sd: MaxSD of both sides.
    """

    suite = SUITE
    claims = CLAIMS

    credit: int = 64
    max_sd: int = 1400

    def asked(self, cookie: bytes = COOKIES[0], *, port: int = 39999) -> StpStory:
        """The tester asks for a cookie by an empty BEGIN from another port, and is given it."""
        asking = StpStory(at=self.at)
        csn = TESTER_CSN - 1
        asking.tester(codec.BEGIN, csn=csn, cookie=None)
        asking.iut(codec.BGREJ, reason=6, peer_csn=csn, max_sd=self.max_sd, cookie=cookie)
        self.packets += [between(packet, port=port) for packet in asking.packets]
        self.at = asking.at
        return self

    def opened(self, *, data: bytes = b"", wait: float = 0.6) -> StpStory:
        """The tester calls with the cookie it has been given: BEGIN and BGAK.

        ``wait`` is the round-trip time, seconds.
        """
        self.asked().tester(codec.BEGIN, data=data, after=wait)
        return self.iut(codec.BGAK, int(bool(data)))

    def called(self, data: bytes = b"") -> StpStory:
        """The implementation calls, is given a cookie, and calls anew: BEGIN and BGAK."""
        self.iut(codec.BEGIN, csn=IUT_CSN - 1, seq=7, cookie=None)
        self.tester(codec.BGREJ, reason=6, peer_csn=IUT_CSN - 1, after=0.6)
        self.iut(codec.BEGIN, data=data)
        return self.tester(codec.BGAK, int(bool(data)), after=0.6)

    def iut(self, kind: int, number: int = 0, *, after: float = 0.0, **fields: Any) -> StpStory:
        """The implementation sends a packet.

        Args:
            kind: its type.
            number: count of an SD, N(S) of a POLL, N(R) of BGAK, END, STAT or USTAT.
            after: seconds since the packet before.
            fields: fields of :class:`Stp`; ``elements`` and ``n_mr`` as counts.
        """
        return self._tell(True, kind, number, after, fields)

    def tester(self, kind: int, number: int = 0, *, after: float = 0.0, **fields: Any) -> StpStory:
        """A packet of the tester arrives; arguments as for :meth:`iut`."""
        return self._tell(False, kind, number, after, fields)

    def raw(self, outgoing: bool, octets: bytes, *, after: float = 0.0) -> StpStory:
        """A malformed STP packet, with the correct checksum where there is room for one."""
        datagram = build_datagram(self._compose(outgoing, codec.SD, 0, {}), octets, rechecked=True)
        return self.tell(outgoing, datagram, after)

    def _tell(
        self, outgoing: bool, kind: int, number: int, after: float, fields: dict[str, Any]
    ) -> StpStory:
        broken = fields.pop("broken_checksum", False)
        packet = bytearray(build(self._compose(outgoing, kind, number, fields)))
        if broken:
            packet[28 + 8] ^= 0x55
            packet[26:28] = bytes(2)
        return self.tell(outgoing, bytes(packet), after)

    def _compose(self, outgoing: bool, kind: int, number: int, fields: dict[str, Any]) -> Stp:
        mine, other = (IUT_ISS, TESTER_ISS) if outgoing else (TESTER_ISS, IUT_ISS)
        csn, peer = (IUT_CSN, TESTER_CSN) if outgoing else (TESTER_CSN, IUT_CSN)
        numbered: dict[str, Any] = {"seq": on_wire(number, mine)}
        acknowledging: dict[str, Any] = {"seq": on_wire(number, other)}
        reported: dict[str, Any] = {"n_ps": 1, "timestamp": 7}
        polling = {**reported, "csn": csn}
        both = {"csn": csn, "peer_csn": peer}
        opening = {"seq": mine, "csn": csn, "n_mr": self.credit, "max_sd": self.max_sd}
        # A call carries what the other side has given; its BGAK brings the next one.
        owns, others = (COOKIES, TESTER_COOKIES) if outgoing else (TESTER_COOKIES, COOKIES)
        usual: dict[int, dict[str, Any]] = {
            codec.BEGIN: {**opening, "version": VERSION, "cookie": others[0]},
            codec.BGAK: {**opening, **both, "n_mr": on_wire(self.credit, other),
                   "n_r": on_wire(number, other), "cookie": owns[1]},
            codec.BGREJ: {"tag": 0, "peer_csn": peer, "reason": 3},
            codec.END: {**acknowledging, **both, "reason": 0},
            codec.ENDAK: {"peer_csn": peer},
            codec.SD: {**numbered},
            codec.SDP: {**numbered, **polling},
            codec.POLL: {**numbered, **polling},
            codec.STAT: {**acknowledging, **reported},
            codec.USTAT: acknowledging,
        }  # fmt: skip
        if kind in (codec.STAT, codec.USTAT):
            fields = {"n_mr": self.credit, "elements": (), **fields}
            fields["n_mr"] = on_wire(fields["n_mr"], other)
            fields["elements"] = tuple(on_wire(count, other) for count in fields["elements"])
        if kind == codec.BGREJ and fields.get("reason") == 6:
            fields = {"max_sd": self.max_sd, "cookie": owns[0], **fields}
        if kind in (codec.BEGIN, codec.BGAK) and "csn" in fields:
            fields = {"tag": tag_of(fields["csn"]), **fields}
        carried = {"tag": tag_of(csn), "udp_sport": UDP_PORT, "udp_dport": UDP_PORT}
        ports = ends(outgoing, IUT_PORT, TESTER_PORT)
        return Stp(*ports, kind, **{**carried, **usual[kind], **fields})

    def of_service(self, port: int) -> StpStory:
        """The same packets, but of another service of the implementation."""
        self.packets = [between(item, service=port) for item in self.packets]
        return self

    def flow(self) -> Flow:
        """The connection told, replayed: the one between the usual ports that came last."""
        return [flow for flow in read_flows(self.trace()) if flow.ends[2] == TESTER_PORT][-1]


def opened() -> StpStory:
    """A connection that the tester opened."""
    return StpStory().opened()


def polled(story: StpStory, n_ps: int = 1) -> StpStory:
    """A POLL and its STAT."""
    story.tester(codec.POLL, 0, n_ps=n_ps, after=1.0)
    return story.iut(codec.STAT, 0, n_ps=n_ps, after=0.01)


def later(story: StpStory) -> StpStory:
    """A long silence, shown by a packet between other ports."""
    quiet = StpStory(at=story.at).tester(codec.ENDAK, after=9.0)
    story.packets += [between(quiet.packets[0], port=50000)]
    return story


def between(captured: Captured, *, port: int | None = None, service: int | None = None) -> Captured:
    """The same packet between other ports."""
    stp = dissect(captured.data)
    mine, other = ("dport", "sport") if captured.outgoing else ("sport", "dport")
    ports: dict[str, Any] = {
        mine: port or getattr(stp, mine),
        other: service or getattr(stp, other),
    }
    return replace(captured, data=build(replace(stp, **ports)))
