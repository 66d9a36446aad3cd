"""STP/1 packets as typed records, one per type (STP/1 section 3).

Packet numbers and credits are unsigned 24-bit fields, connection sequence numbers and timestamps
unsigned 32-bit fields, as on the wire; ``stp.sequence`` compares them. Fields of several types are:

    iss: number of the sender's first SD.
    csn: connection sequence number of the sender.
    peer_csn: connection sequence number of the recipient.
    n_s: number of the SD; in a POLL, VT(S) of the sender.
    n_r: VR(R) of the sender.
    n_mr: VR(MR) of the sender; in a BEGIN its credit, counted from the peer's ISS.
    n_ps: number of the poll; in a STAT, of the one answered.
    timestamp: of the poll's sender, in its own unit; a STAT returns it unchanged.
    reason: 8 bits, see :class:`Reason`.
    max_sd: octets of user data accepted in one packet, None when not announced.
    cookie: the value of the Cookie option, 8 to 32 octets, None when there is none.
    options: (kind, value) of every other option, in order, without padding.
    data: user data, possibly none; in a BEGIN that of the SD numbered ``iss``.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import ClassVar

from bentpipe_reference.common.record import record

VERSION = 2
"""The protocol version in a BEGIN (section 3.3)."""

LEAST_COOKIE, MOST_COOKIE = 8, 32
"""Octets of a cookie (section 3.3, STP-PF-017)."""


class Type(IntEnum):
    """Packet types (section 3.1); 0, 5, 6 and 13 to 15 are not used."""

    BEGIN = 1
    BGAK = 2
    END = 3
    ENDAK = 4
    BGREJ = 7
    SD = 8
    SDP = 9
    POLL = 10
    STAT = 11
    USTAT = 12


class Flags(IntFlag):
    """Flags (section 3.1): FIN in BEGIN, SD and SDP, V in BEGIN, A and R in END."""

    FIN = 1
    V = 2
    A = 4
    R = 8


class Reason(IntEnum):
    """Why a connection is refused or released (section 3.4); others are treated like ABORTED."""

    NONE = 0
    ABORTED = 1
    NO_CONNECTION = 2
    NOT_LISTENING = 3
    VERSION = 4
    RESOURCES = 5
    COOKIE = 6
    NO_ANSWER = 7


@record
class Header:
    """What every packet begins with (section 3.1).

    Attributes:
        sport: the sender's STP port, 16 bits.
        dport: the recipient's STP port, 16 bits.
        tag: 16 bits, see section 4.
        flags: 4 bits, made of :class:`Flags`.
    """

    type: ClassVar[Type]
    sport: int
    dport: int
    tag: int
    flags: int


@record
class Begin(Header):
    """Asks for a connection, and may carry its first data (section 3.3).

    Attributes:
        version: 4 bits; of a BEGIN of another version no options and no data are decoded, so that
            it can be refused whatever follows its first 20 octets (STP-PF-003).
    """

    type: ClassVar[Type] = Type.BEGIN
    iss: int
    n_mr: int
    csn: int
    version: int = VERSION
    max_sd: int | None = None
    cookie: bytes | None = None
    data: bytes = b""
    options: tuple[tuple[int, bytes], ...] = ()


@record
class Bgak(Header):
    """Accepts a connection (section 3.3)."""

    type: ClassVar[Type] = Type.BGAK
    iss: int
    n_mr: int
    csn: int
    peer_csn: int
    n_r: int
    max_sd: int | None = None
    cookie: bytes | None = None
    options: tuple[tuple[int, bytes], ...] = ()


@record
class Bgrej(Header):
    """Refuses a connection, or asks to call anew with a cookie (section 3.3)."""

    type: ClassVar[Type] = Type.BGREJ
    reason: int
    peer_csn: int
    max_sd: int | None = None
    cookie: bytes | None = None
    options: tuple[tuple[int, bytes], ...] = ()


@record
class End(Header):
    """Releases or aborts a connection (section 3.4)."""

    type: ClassVar[Type] = Type.END
    n_r: int
    reason: int
    csn: int
    peer_csn: int


@record
class Endak(Header):
    """Confirms a release (section 3.4)."""

    type: ClassVar[Type] = Type.ENDAK
    peer_csn: int


@record
class Sd(Header):
    """Sequenced data."""

    type: ClassVar[Type] = Type.SD
    n_s: int
    data: bytes = b""


@record
class Sdp(Header):
    """Sequenced data with a POLL whose N(S) is ``n_s`` plus one (section 3.5)."""

    type: ClassVar[Type] = Type.SDP
    n_s: int
    n_ps: int
    timestamp: int
    csn: int
    data: bytes = b""


@record
class Poll(Header):
    """Asks what has arrived (section 3.5)."""

    type: ClassVar[Type] = Type.POLL
    n_s: int
    n_ps: int
    timestamp: int
    csn: int


@record
class Stat(Header):
    """Answers a POLL with everything that is missing (section 3.5).

    The codec takes any list; whether it means something is for the endpoint to decide.

    Attributes:
        elements: the list, 24 bits each; the last is the bound.
    """

    type: ClassVar[Type] = Type.STAT
    n_r: int
    n_mr: int
    n_ps: int
    timestamp: int
    elements: tuple[int, ...] = ()


@record
class Ustat(Header):
    """Reports one gap unasked (section 3.5).

    Attributes:
        elements: first number missing and first number held after it.
    """

    type: ClassVar[Type] = Type.USTAT
    n_r: int
    n_mr: int
    elements: tuple[int, int]


Packet = Begin | Bgak | Bgrej | End | Endak | Sd | Sdp | Poll | Stat | Ustat
