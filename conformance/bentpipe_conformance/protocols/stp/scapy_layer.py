# scapy.contrib.description = Satellite Transport Protocol, version 1 (STP/1)
# scapy.contrib.status = loads

"""Satellite Transport Protocol, version 1 (STP/1), for Scapy.

``IP()/STP()/POLL()`` and ``IP()/UDP()/STP()/...`` build and dissect; the data of an SD is a Raw
payload. The types are called as in the specification, and ``STP`` is not Scapy's spanning tree.
Directly over IP the protocol numbers 253 and 254 are bound; for UDP call :func:`bind_udp`.
The module imports Scapy only, so that its file can be used without the rest of bentpipe.
A packet that is malformed (STP-PF-003) is dissected as ``STP``/``Raw`` or as ``STP`` alone, and its
:attr:`STP.malformed` is true.
"""

from __future__ import annotations

import struct
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.config import conf
    from scapy.fields import (
        BitEnumField,
        BitField,
        ByteEnumField,
        ByteField,
        FieldLenField,
        FieldListField,
        FlagsField,
        IntField,
        PacketListField,
        ShortField,
        StrLenField,
        ThreeBytesField,
        XIntField,
        XShortField,
    )
    from scapy.layers.inet import IP, UDP, in4_chksum
    from scapy.layers.inet6 import IPv6, _IPv6ExtHdr, in6_chksum
    from scapy.packet import (
        Packet,
        bind_bottom_up,
        bind_layers,
        bind_top_down,
        split_bottom_up,
        split_top_down,
    )
    from scapy.utils import checksum

TYPES = {
    1: "BEGIN", 2: "BGAK", 3: "END", 4: "ENDAK", 7: "BGREJ",
    8: "SD", 9: "SDP", 10: "POLL", 11: "STAT", 12: "USTAT",
}  # fmt: skip

REASONS = {
    0: "none", 1: "aborted", 2: "no connection", 3: "nobody listens", 4: "version not supported",
    5: "no resources", 6: "call anew", 7: "no answer",
}  # fmt: skip

_SD = 8
_VERSION = 2


class STP(Packet):
    """The common header (section 3.1)."""

    name = "STP"
    fields_desc = [
        ShortField("sport", 0),
        ShortField("dport", 0),
        FlagsField("flags", 0, 4, ["FIN", "V", "A", "R"]),
        BitEnumField("type", _SD, 4, TYPES),
        ThreeBytesField("seq", 0),
        XShortField("chksum", None),
        XShortField("tag", 0),
    ]

    def post_build(self, p: bytes, pay: bytes) -> bytes:
        """Fill in the checksum; the pseudo-header depends on what is below (section 3.2)."""
        p += pay
        if self.chksum is None:
            below = self.underlayer
            if isinstance(below, IP):
                value = in4_chksum(below.proto, below, p)
            elif isinstance(below, IPv6 | _IPv6ExtHdr):
                value = in6_chksum(below.nh, below, p)
            else:
                value = checksum(p)
            p = p[:8] + struct.pack("!H", value) + p[10:]
        return p

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """The body of the type if it is well formed, otherwise raw octets."""
        body = super().guess_payload_class(payload)
        if issubclass(body, _Body) and not body.fits(payload):
            return conf.raw_layer
        return body

    @property
    def malformed(self) -> bool:
        """Whether a dissected packet has a wrong length, type or options; not its checksum."""
        if self.type == _SD:
            return False
        return not isinstance(self.payload, _Body) or self.payload.type_code != self.type

    def hashret(self) -> bytes:
        """The same for both directions of a connection."""
        return struct.pack("!H", self.sport ^ self.dport)

    def answers(self, other: Packet) -> int:
        """Whether this packet is what the peer sends in return to ``other``."""
        if not isinstance(other, STP) or (self.sport, self.dport) != (other.dport, other.sport):
            return 0
        return int(isinstance(self.payload, _Body) and self.payload.answers(other.payload))

    def mysummary(self) -> str:
        """One line, for example ``STP SD 7 40000 > 9 FIN``."""
        text = f"STP {TYPES.get(self.type, self.type)} {self.seq} {self.sport} > {self.dport}"
        return f"{text} {self.flags}" if self.flags else text


class _Body(Packet):
    """What follows the common header in every type but SD."""

    type_code = 0
    least = 0
    """Octets behind the common header."""

    open_ended = False
    """Whether more octets may follow: data or list elements."""

    answered: str = ""
    """Name of the type to which it is an answer when their CSNs agree."""

    @classmethod
    def fits(cls, octets: bytes) -> bool:
        return len(octets) == cls.least or (cls.open_ended and len(octets) > cls.least)

    def answers(self, other: Packet) -> int:
        return int(other.name == self.answered and self.peer_csn == other.csn)


class _ListItem(Packet):
    """An item of a list: what follows it is the next item."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        return b"", s


def _number(name: str, reserved: str) -> list[Any]:
    return [ByteField(reserved, 0), ThreeBytesField(name, 0)]


class STPOption(_ListItem):
    """An option of any kind but padding (section 3.3)."""

    name = "STP option"
    fields_desc = [
        ByteEnumField("kind", 3, {1: "MaxSD", 2: "Cookie"}),
        FieldLenField("length", None, fmt="B", length_of="value", adjust=lambda _, x: x + 2),
        StrLenField("value", b"", length_from=lambda option: option.length - 2),
    ]

    @classmethod
    def dispatch_hook(cls, octets: bytes = b"", *_: object, **__: object) -> type[Packet]:
        """The class of the option that begins ``octets``."""
        if octets[:1] == b"\x00":
            return STPPadding
        if octets[:1] == b"\x02" and len(octets) > 1 and 10 <= octets[1] <= 34:
            return STPCookie
        return STPMaxSD if octets[:2] == b"\x01\x04" else cls


class STPMaxSD(_ListItem):
    """The most octets of user data that the sender accepts in one packet."""

    name = "STP MaxSD"
    fields_desc = [
        ByteEnumField("kind", 1, {1: "MaxSD"}),
        ByteField("length", 4),
        ShortField("max_sd", 512),
    ]


class STPCookie(_ListItem):
    """What proves the address of a caller to the endpoint that made it, 8 to 32 octets."""

    name = "STP cookie"
    fields_desc = [
        ByteEnumField("kind", 2, {2: "Cookie"}),
        FieldLenField("length", None, fmt="B", length_of="cookie", adjust=lambda _, x: x + 2),
        StrLenField("cookie", bytes(8), length_from=lambda option: option.length - 2),
    ]


class STPPadding(_ListItem):
    """One octet of padding."""

    name = "STP padding"
    fields_desc = [ByteField("kind", 0)]


class _Opening(_Body):
    """BEGIN, BGAK and BGREJ, which have options."""

    optlen_at = 0
    """Octet of the body whose low half counts the words of options."""

    @classmethod
    def fits(cls, octets: bytes) -> bool:
        if len(octets) < cls.least:
            return False
        end = cls.least + 4 * (octets[cls.optlen_at] & 15)
        if len(octets) < end or (len(octets) > end and not cls.open_ended):
            return False
        at = cls.least
        while at < end:
            if octets[at] == 0:
                at += 1
            elif at + 1 < end and 2 <= octets[at + 1] <= end - at:
                at += octets[at + 1]
            else:
                return False
        return True

    def post_build(self, p: bytes, pay: bytes) -> bytes:
        """Pad the options to whole words and fill in optlen, unless optlen is given."""
        if self.optlen is None:
            p += bytes(-len(p) % 4)
            words, at = (len(p) - self.least) // 4, self.optlen_at
            p = p[:at] + bytes([p[at] & 0xF0 | words & 15]) + p[at + 1 :]
        return p + pay


def _options_length(body: Packet) -> int:
    """Octets of the option field; of a BEGIN of another version it is not examined (STP-PF-003)."""
    return 4 * body.optlen if getattr(body, "version", _VERSION) == _VERSION else 0


_OPTIONS = PacketListField("options", [], STPOption, length_from=_options_length)


class BEGIN(_Opening):
    """BEGIN (section 3.3); its data, if any, is the payload.

    Of another version only the first 20 octets of the packet are read, and all others are payload.
    """

    name = "STP BEGIN"
    type_code = 1
    least = 8
    open_ended = True
    fields_desc = [
        BitField("version", _VERSION, 4),
        BitField("optlen", None, 4),
        ThreeBytesField("n_mr", 0),
        XIntField("csn", 0),
        _OPTIONS,
    ]

    @classmethod
    def fits(cls, octets: bytes) -> bool:
        """Whether the body has a length and options that its type allows."""
        other = len(octets) >= cls.least and octets[0] >> 4 != _VERSION
        return other or super().fits(octets)


class BGAK(_Opening):
    """BGAK (section 3.3)."""

    name = "STP BGAK"
    type_code = 2
    answered = "STP BEGIN"
    least = 16
    fields_desc = [
        BitField("reserved", 0, 4),
        BitField("optlen", None, 4),
        ThreeBytesField("n_mr", 0),
        XIntField("csn", 0),
        XIntField("peer_csn", 0),
        *_number("n_r", "reserved_n_r"),
        _OPTIONS,
    ]


class BGREJ(_Opening):
    """BGREJ (section 3.3)."""

    name = "STP BGREJ"
    type_code = 7
    answered = "STP BEGIN"
    least = 8
    optlen_at = 1
    fields_desc = [
        ByteEnumField("reason", 1, REASONS),
        BitField("reserved", 0, 4),
        BitField("optlen", None, 4),
        ShortField("reserved_2", 0),
        XIntField("peer_csn", 0),
        _OPTIONS,
    ]


class END(_Body):
    """END (section 3.4)."""

    name = "STP END"
    type_code = 3
    least = 12
    fields_desc = [
        ByteEnumField("reason", 0, REASONS),
        ThreeBytesField("reserved", 0),
        XIntField("csn", 0),
        XIntField("peer_csn", 0),
    ]


class ENDAK(_Body):
    """ENDAK (section 3.4)."""

    name = "STP ENDAK"
    type_code = 4
    answered = "STP END"
    least = 4
    fields_desc = [XIntField("peer_csn", 0)]


class SDP(_Body):
    """SDP (section 3.5) behind the common header; its data is the payload."""

    name = "STP SDP"
    type_code = 9
    least = 12
    open_ended = True
    fields_desc = [*_number("n_ps", "reserved"), IntField("timestamp", 0), XIntField("csn", 0)]


class POLL(_Body):
    """POLL (section 3.5)."""

    name = "STP POLL"
    type_code = 10
    least = 12
    fields_desc = SDP.fields_desc


class STAT(_Body):
    """STAT (section 3.5)."""

    name = "STP STAT"
    type_code = 11
    least = 12
    open_ended = True
    fields_desc = [
        *_number("n_mr", "reserved"),
        *_number("n_ps", "reserved_n_ps"),
        IntField("timestamp", 0),
        # Each element with the reserved octet of its word as the highest.
        FieldListField("elements", [], IntField("", 0)),
    ]

    @classmethod
    def fits(cls, octets: bytes) -> bool:
        """Whether the body has a length that its type allows."""
        return super().fits(octets) and len(octets) % 4 == 0

    def answers(self, other: Packet) -> int:
        """Whether it answers the poll of a POLL or SDP."""
        return int(
            isinstance(other, POLL | SDP)
            and (self.n_ps, self.timestamp) == (other.n_ps, other.timestamp)
        )


class USTAT(_Body):
    """USTAT (section 3.5)."""

    name = "STP USTAT"
    type_code = 12
    least = 12
    fields_desc = [
        *_number("n_mr", "reserved"),
        *_number("element_1", "reserved_1"),
        *_number("element_2", "reserved_2"),
    ]


for _body in (
    BEGIN, BGAK, END, ENDAK, BGREJ, SDP, POLL, STAT, USTAT,
):  # fmt: skip
    bind_layers(STP, _body, type=_body.type_code)

# The first is the number used by default.
bind_layers(IP, STP, proto=253)
bind_bottom_up(IP, STP, proto=254)
bind_layers(IPv6, STP, nh=253)
bind_bottom_up(IPv6, STP, nh=254)


def bind_udp(port: int) -> None:
    """Take what goes to or comes from this UDP port for STP; STP has no port of its own."""
    bind_bottom_up(UDP, STP, dport=port)
    bind_bottom_up(UDP, STP, sport=port)
    bind_top_down(UDP, STP, sport=port, dport=port)


def unbind_udp(port: int) -> None:
    """Undo :func:`bind_udp`."""
    split_bottom_up(UDP, STP, dport=port)
    split_bottom_up(UDP, STP, sport=port)
    split_top_down(UDP, STP, sport=port, dport=port)


STPBegin, STPBgak, STPEnd, STPEndak, STPBgrej = BEGIN, BGAK, END, ENDAK, BGREJ
STPSdp, STPPoll, STPStat, STPUstat = SDP, POLL, STAT, USTAT
"""Former names of the types."""
