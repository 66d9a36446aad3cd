"""Hostile packets: invented, changed in a field, or damaged."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

from bentpipe_reference.stp import packets as stp
from bentpipe_reference.stp.packets import Packet
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK

_LONGEST_LIST = 90


def near(numbers: random.Random, number: int, mask: int = PACKET_MASK) -> int:
    """A number close to another, at an edge, or anywhere."""
    step = numbers.choice([0, 0, 1, 1, 2, 3, 4, 16, 64, 2048, -1, -2, -100, 1 << 22])
    if numbers.random() < 0.15:
        top = mask + 1
        return numbers.choice([0, 1, top // 2 - 1, top // 2, top - 1, numbers.randrange(top)])
    return number + step & mask


def invented(
    numbers: random.Random,
    ports: tuple[int, int],
    tag: int,
    csns: tuple[int, int],
    theirs: int,
    ours: int,
    top: int | None = None,
    polls: int = 0,
    cookie: bytes | None = None,
) -> Packet:
    """A packet of any type with numbers of a connection, some of them wrong.

    Args:
        numbers: chance.
        ports: source and destination.
        tag: the right one.
        csns: those of the sender and the recipient of the packet.
        theirs: VR(R) of the recipient.
        ours: VT(A) of the recipient.
        top: its VT(S).
        polls: its VT(PS).
        cookie: of a BEGIN, if it carries one.
    """
    csn, own = csns
    flight = 0 if top is None else top - ours
    theirs, ours, polls = theirs & PACKET_MASK, ours & PACKET_MASK, polls & PACKET_MASK
    high = ours + flight & PACKET_MASK
    if numbers.random() < 0.2:
        csn = near(numbers, csn, CSN_MASK)
    if numbers.random() < 0.2:
        own = numbers.choice([near(numbers, own, CSN_MASK), own & 0xFFFF, 0])
    head = (*ports, tag)
    n_s = near(numbers, theirs)
    kind = numbers.randrange(11)
    data = bytes(numbers.choice([0, 1, 100, 512, 1400]))
    if kind == 0:
        return stp.Begin(*head, numbers.randrange(4), n_s, near(numbers, 4), csn, data=data,
                     version=numbers.choice([2, 2, 2, 1]), max_sd=1400, cookie=cookie)  # fmt: skip
    if kind == 1:
        return stp.Bgak(*head, 0, n_s, near(numbers, ours), csn, own, near(numbers, ours),
                    max_sd=512, cookie=any_cookie(numbers))  # fmt: skip
    if kind == 2:
        return stp.Bgrej(*ports, 0, 0, numbers.randrange(9), own, cookie=any_cookie(numbers))
    if kind == 3:
        flags = numbers.choice([0, 4, 8, 12])
        zero = numbers.random() < 0.2 and flags & 8
        return stp.End(*head, flags, near(numbers, ours), numbers.randrange(9),
                   0 if zero else csn, own)  # fmt: skip
    if kind == 4:
        return stp.Endak(*head, 0, own)
    if kind == 5:
        return stp.Sd(*head, numbers.choice([0, 0, 0, 1]), n_s, data)
    if kind == 6:
        return stp.Sdp(*head, numbers.choice([0, 0, 0, 1]), n_s, near(numbers, polls), 7, csn, data)
    if kind == 7:
        return stp.Poll(*head, 0, n_s, near(numbers, polls), 7, csn)
    n_r = numbers.choice([ours, near(numbers, ours), near(numbers, high)])
    credit = n_r + numbers.choice([0, 1, 16, 2048, (1 << 23) - 1]) & PACKET_MASK
    if kind == 8:
        first = near(numbers, n_r)
        return stp.Ustat(*head, 0, n_r, credit, (first, near(numbers, first)))
    n_ps = numbers.choice([0, near(numbers, polls), near(numbers, polls)])
    return stp.Stat(*head, 0, n_r, credit, n_ps, 7, elements(numbers, n_r, flight))


def any_cookie(numbers: random.Random) -> bytes | None:
    """Octets that nobody has made a cookie of, or None."""
    size = numbers.choice([0, stp.LEAST_COOKIE, 16, 16, stp.MOST_COOKIE])
    return numbers.randbytes(size) if size else None


def altered(cookie: bytes, numbers: random.Random) -> bytes:
    """A cookie with one bit changed."""
    at = numbers.randrange(8 * len(cookie))
    return (int.from_bytes(cookie, "big") ^ 1 << at).to_bytes(len(cookie), "big")


def elements(numbers: random.Random, n_r: int, flight: int) -> tuple[int, ...]:
    """A list: none, within what is in flight, or a bomb that names up to 2^23 numbers."""
    count = numbers.choice([0, 0, 2, 3, 4, 5, 67, _LONGEST_LIST])
    most = numbers.choice([max(flight, 1), 200, 1 << 23])
    if count > most:
        count = 0
    listed = sorted(numbers.randrange(most + 1) for _ in range(count))
    if numbers.random() < 0.1:
        numbers.shuffle(listed)
    return tuple(n_r + step & PACKET_MASK for step in listed)


_NUMBERS = ("n_s", "n_r", "n_mr", "n_ps", "iss")
_CSNS = ("csn", "peer_csn")


def mutated(packet: Packet, numbers: random.Random) -> Packet:
    """The packet with one field changed."""
    names = [item.name for item in fields(packet) if item.name not in ("options", "version")]
    name = numbers.choice(names)
    value: Any = getattr(packet, name)
    if name in _NUMBERS:
        value = near(numbers, value)
    elif name in _CSNS:
        value = numbers.choice([near(numbers, value, CSN_MASK), value & 0xFFFF, 0])
    elif name == "flags":
        value ^= 1 << numbers.randrange(4)
    elif name == "data":
        value = value[: numbers.randrange(len(value) + 1)] if value else b"!" * 600
    elif name == "elements":
        listed = elements(numbers, value[0] if value else 0, 100)
        value = listed if isinstance(packet, stp.Stat) else (*listed, 1, 2)[:2]
    elif name == "max_sd":
        value = numbers.choice([None, 0, 512, 65535])
    elif name == "cookie":
        value = altered(value, numbers) if value and numbers.random() < 0.7 else any_cookie(numbers)
    elif name == "reason":
        value = numbers.randrange(256)
    elif name == "timestamp":
        value = numbers.getrandbits(32)
    else:
        value = near(numbers, value, 0xFFFF)
    return replace(packet, **{name: value})


def damaged(octets: bytes, numbers: random.Random) -> bytes:
    """Cut short, made longer, or with an octet changed."""
    way = numbers.randrange(3)
    if way == 0:
        return octets[: numbers.randrange(len(octets))]
    if way == 1:
        return octets + numbers.randbytes(numbers.randrange(1, 9))
    at = numbers.randrange(len(octets))
    return octets[:at] + bytes([octets[at] ^ numbers.randrange(1, 256)]) + octets[at + 1 :]
