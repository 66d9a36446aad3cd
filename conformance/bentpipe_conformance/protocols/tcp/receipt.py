"""Traces of an implementation that receives, told packet by packet.

Offsets count octets of the tester's data from 0; times are seconds::

    receipt = Receipt().data(0, 100).reply(100).data(200, 300, after=0.1).reply(100, (200, 300))
    assert receipt.verdicts("SNR-RCV-007") == {Verdict.PASS}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.story import BaseStory, ends
from bentpipe_conformance.protocols.tcp.codec import ACK, MODULUS, RST, SYN, Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE

CLAIMS: Mapping[str, Any] = {
    "sack": True,
    "sack_receiver": True,
    "dsack": True,
    "timestamps": True,
    "window_scale": True,
    "challenge_acks": True,
    "keep_alive": False,
}
"""The conformance statement of the implementation in the traces."""

TESTER_ISS, IUT_ISS = MODULUS - 1000, 4999
"""The tester's numbers wrap soon after the handshake, so that every trace crosses zero."""


@dataclass(kw_only=True)
class Receipt(BaseStory):
    """A connection on which the tester sends, as captured at the implementation's side.

    Attributes:
        sack: whether both sides negotiate SACK.
        timestamps: whether both sides negotiate timestamps; the tester's start at 1000.
        shift: window shift both sides negotiate, None for none.
        mss: MSS option of the tester's SYN.
        own_mss: MSS option of the implementation's.
        service: port of the implementation.
        window: octets the implementation offers.
    """

    suite = SUITE
    claims = CLAIMS

    sack: bool = True
    timestamps: bool = False
    shift: int | None = None
    mss: int | None = 1460
    own_mss: int | None = 1460
    service: int = 9
    window: int = 20000
    _port: int = 4000

    def __post_init__(self) -> None:
        self.open()

    def open(
        self, *, options: bytes = b"", answer: int | None = SYN | ACK, **fields: Any
    ) -> Receipt:
        """Another handshake, from the next port; ``answer`` None leaves the SYN unanswered.

        ``fields`` are the SYN's.
        """
        self._port += 1
        self.syn(options=options, **fields)
        if answer is not None:
            self._put(True, answer, seq=-1, ack=0)
        if answer == SYN | ACK:
            self._put(False, ACK, seq=0, ack=0)
        return self

    def syn(self, *, options: bytes = b"", after: float = 0.0, **fields: Any) -> Receipt:
        """The tester's SYN, again if it was told before."""
        return self._put(False, SYN, seq=-1, ack=0, after=after, options=options, **fields)

    def _put(
        self, outgoing: bool, flags: int, *, seq: int, ack: int, after: float = 0.0,
        options: bytes = b"", **fields: Any,
    ) -> Receipt:  # fmt: skip
        own, other = (IUT_ISS, TESTER_ISS) if outgoing else (TESTER_ISS, IUT_ISS)
        window = min(self.window >> (0 if flags & SYN else self.shift or 0), 0xFFFF)
        numbers = (own + 1 + seq) % MODULUS, (other + 1 + ack) % MODULUS
        segment = Tcp(*ends(outgoing, self.service, self._port), *numbers, flags, window, b"")
        if flags & SYN:
            segment = replace(
                segment,
                mss=self.own_mss if outgoing else self.mss,
                sack_permitted=self.sack,
                window_scale=self.shift,
            )
        if self.timestamps:
            segment = replace(segment, tsval=1000 if not outgoing else 7000, tsecr=1000)
        return self.tell(outgoing, build(replace(segment, **fields), options), after)

    def data(
        self,
        start: int,
        end: int,
        *,
        after: float = 0.0,
        flags: int = ACK,
        ack: int = 0,
        **fields: Any,
    ) -> Receipt:
        """The tester's octets from ``start`` to ``end`` arrive.

        ``fields`` are a segment's, and ``options`` raw octets to append to its options.
        """
        fields = {"payload": pattern(start, end - start), **fields}
        return self._put(False, flags, seq=start, ack=ack, after=after, **fields)

    def reply(
        self,
        ack: int,
        *blocks: tuple[int, int],
        after: float = 0.0,
        seq: int = 0,
        flags: int = ACK,
        **fields: Any,
    ) -> Receipt:
        """The implementation acknowledges and reports blocks; ``fields`` are a segment's."""
        base = TESTER_ISS + 1
        fields["sack"] = tuple(((base + a) % MODULUS, (base + b) % MODULUS) for a, b in blocks)
        return self._put(True, flags, seq=seq, ack=ack, after=after, **fields)

    def reset(self, seq: int, *, after: float = 0.0, **fields: Any) -> Receipt:
        """The tester's RST arrives."""
        return self._put(False, RST | ACK, seq=seq, ack=0, after=after, **fields)

    def later(self, seconds: float = 5.0) -> Receipt:
        """Nothing for a while, then the tester acknowledges once more."""
        return self._put(False, ACK, seq=0, ack=0, after=seconds)
