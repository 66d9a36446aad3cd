"""Mutations that keep a format whole, so that what reads its contents is reached.

Octets changed blindly mostly end at a length or a digest. Here the packets of a capture are changed
and its records written anew, most of the packets with correct checksums; the values of a JSON
document are; and the files of a bundle, each in its own way.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.pcapng import read_octets, write_pcapng
from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_fuzz.inputs.mutation import mutated

Mutate = Callable[[bytes, Sequence[bytes], random.Random], bytes]

SECOND = 10**9
LATEST = 2**32 - 1
"""Seconds since 1970 that a pcap file can say."""
BEFORE_IP = {1: 14, 12: 0, 101: 0, 113: 16, 228: 0}
"""Octets before the IP header by link type: Ethernet, raw IP, Linux cooked."""
ICMP, TCP, UDP = 1, 6, 17
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -1.0, 1e308, "", "x", "a" * 999,
    "\x1b]0;x\x07", "[/x]", "[bold]", "\ud800", "<script>", "../../etc", "]]>", [], {}, [None],
    {"": 0}, "nan", "2026-11-23",
)  # fmt: skip
"""What nobody expects in a document."""


def capture(octets: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A capture whose packets, or their times and order, were changed."""
    frames = _frames(octets)
    if not frames:
        return mutated(octets, others, draw)
    spare = _frames(draw.choice(others)) or frames
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        if not frames:
            break
        at = draw.randrange(len(frames))
        match draw.randrange(9):
            case 0:
                del frames[at : at + draw.choice((1, 1, 2, 10))]
            case 1:
                frames.insert(draw.randrange(len(frames) + 1), frames[at])
            case 2:
                other = draw.randrange(len(frames))
                frames[at], frames[other] = frames[other], frames[at]
            case 3:
                step = draw.choice((-SECOND, 1, 1000, SECOND, 3600 * SECOND, -(2**40), 2**61))
                for place in range(at, len(frames) if draw.random() < 0.5 else at + 1):
                    frames[place] = _moved(frames[place], step)
            case 4:
                packet = draw.choice(spare)
                frames.insert(at, replace(frames[at], data=packet.data))
            case 5:
                cut = draw.randrange(len(frames[at].data) + 1)
                frames[at] = replace(frames[at], data=frames[at].data[:cut])
            case _:
                data = changed(frames[at].data, frames[at].link_type, draw)
                frames[at] = replace(frames[at], data=data, original_length=len(data))
    return _written(frames, octets[:4] == b"\x0a\x0d\x0d\x0a")


def _frames(octets: bytes) -> list[Frame]:
    """The packets of a capture, those with a time, as far as it can be read."""
    found: list[Frame] = []
    try:
        for frame in read_octets(octets, "capture"):
            if frame.time_ns is not None:
                found.append(frame)
    except CaptureError:
        pass
    return found


def _moved(frame: Frame, step: int) -> Frame:
    time = (frame.time_ns or 0) + step
    return replace(frame, time_ns=min(max(time, 0), 2**64 - 1))


def changed(data: bytes, link_type: int, draw: random.Random) -> bytes:
    """A packet with one to four changed octets, mostly of its headers."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        if not found:
            break
        at = draw.randrange(min(len(found), draw.choice((60, 100, len(found)))))
        match draw.randrange(5):
            case 0:
                found[at] ^= 1 << draw.randrange(8)
            case 1:
                found[at] = draw.choice(EDGES)
            case 2:
                size = draw.choice((2, 4))
                step = draw.choice((-1, 1, 1460, 65535, 2**31))
                value = int.from_bytes(found[at : at + size], "big") + step
                found[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "big")
            case 3:
                found[at:at] = draw.randbytes(draw.choice((1, 4, 8, 40)))
            case 4:
                del found[at : at + draw.choice((1, 4, 20))]
    return bytes(found) if draw.random() < 0.2 else summed(bytes(found), link_type)


def summed(data: bytes, link_type: int) -> bytes:
    """A frame with correct lengths and checksums: IPv4's, and TCP's, ICMP's or STP's."""
    start = BEFORE_IP.get(link_type, 0)
    ip = bytearray(data[start:])
    header = (ip[0] & 15) * 4 if ip else 0
    if not ip or ip[0] >> 4 != 4 or not 20 <= header <= len(ip) < 1 << 16:
        return data
    ip[2:4] = len(ip).to_bytes(2, "big")
    ip[10:12] = bytes(2)
    ip[10:12] = internet_checksum(bytes(ip[:header])).to_bytes(2, "big")
    body, protocol = ip[header:], ip[9]
    pseudo = bytes(ip[12:20]) + bytes((0, protocol)) + len(body).to_bytes(2, "big")
    if protocol == TCP and len(body) >= 20:
        body[16:18] = bytes(2)
        body[16:18] = internet_checksum(pseudo + bytes(body)).to_bytes(2, "big")
    elif protocol == UDP and len(body) >= 18:
        body[4:6], body[6:8], body[16:18] = len(body).to_bytes(2, "big"), bytes(2), bytes(2)
        body[16:18] = internet_checksum(bytes(body[8:])).to_bytes(2, "big")
    elif protocol == ICMP and len(body) >= 8:
        body[2:4] = bytes(2)
        body[2:4] = internet_checksum(bytes(body)).to_bytes(2, "big")
    elif protocol not in (ICMP, TCP, UDP) and len(body) >= 10:
        body[8:10] = bytes(2)
        body[8:10] = internet_checksum(pseudo + bytes(body)).to_bytes(2, "big")
    return data[:start] + bytes(ip[:header]) + bytes(body)


def _written(frames: Sequence[Frame], ng: bool) -> bytes:
    """A capture of these packets, all of the first one's link type."""
    kind = frames[0].link_type if frames else 101
    file = io.BytesIO()
    if ng:
        write_pcapng(file, frames, name="lane", link_type=kind)
        return file.getvalue()
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, kind))
    for frame in frames:
        seconds, rest = divmod(frame.time_ns or 0, SECOND)
        original = max(frame.original_length, len(frame.data))
        file.write(struct.pack("<IIII", min(seconds, LATEST), rest, len(frame.data), original))
        file.write(frame.data)
    return file.getvalue()


def document(octets: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A JSON document with one to three values changed, removed, or put elsewhere."""
    try:
        held = json.loads(octets)
    except (ValueError, RecursionError):
        return mutated(octets, others, draw)
    for _ in range(draw.randrange(1, 4)):
        every = list(_places(held))
        if not every:
            break
        where, key = draw.choice(every)
        match draw.randrange(5):
            case 0:
                del where[key]
            case 1:
                elsewhere, other = draw.choice(every)
                where[key] = json.loads(json.dumps(elsewhere[other]))
            case 2 if isinstance(where, dict):
                where[str(draw.choice(VALUES))[:40]] = where.pop(key)
            case 3 if isinstance(where[key], int | float):
                where[key] += draw.choice((-1, 1, 0.001, 2**16))
            case _:
                where[key] = draw.choice(VALUES)
    return json.dumps(held, indent=1).encode()


def _places(held: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys or positions."""
    if isinstance(held, dict | list):
        for key, value in list(held.items() if isinstance(held, dict) else enumerate(held)):
            yield held, key
            yield from _places(value)


def bundle(octets: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A packed bundle with one to three of its files changed, removed, renamed or exchanged."""
    files, spare = taken_apart(octets), taken_apart(draw.choice(others))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if not files:
            break
        name = draw.choice(sorted(files))
        match draw.randrange(20):
            case 0:
                del files[name]
            case 1:
                files[draw.choice((name + "x", f"cases/x/{name}", f".{name}"))] = files.pop(name)
            case 2:
                files[name] = draw.choice(list({**spare, **files}.values()))
            case 3:
                files[name] = mutated(files[name], list(files.values()), draw)
            case _ if name.endswith(".json"):
                files[name] = document(files[name], list(files.values()), draw)
            case _ if name.endswith(".pcapng"):
                captures = [octets for name, octets in files.items() if name.endswith(".pcapng")]
                files[name] = capture(files[name], captures, draw)
            case _:
                files[name] = mutated(files[name], list(files.values()), draw)
    return joined(files)


def taken_apart(octets: bytes) -> dict[str, bytes]:
    """The files of a packed bundle.

    Raises:
        ValueError, TypeError: it is none.
    """
    head, _, rest = octets.partition(b"\n")
    files = {}
    for name, length in json.loads(head):
        files[name], rest = rest[:length], rest[length:]
    return files


def joined(files: dict[str, bytes]) -> bytes:
    """A bundle as one document: a line of JSON (name and length of each file), then the files."""
    table = [[name, len(octets)] for name, octets in files.items()]
    return json.dumps(table).encode() + b"\n" + b"".join(files.values())


SHAPED: dict[str, Mutate] = {"pcap": capture, "pcapng": capture, "bundle": bundle}
"""Mutations by the names of the targets that have such."""


def drawn(target: str, corpus: Sequence[bytes], draw: random.Random) -> bytes:
    """An input for a target, by its own mutations; every other capture by blind ones."""
    mutate = SHAPED.get(target, mutated)
    if mutate is capture and draw.random() < 0.5:
        mutate = mutated
    return mutate(draw.choice(corpus), corpus, draw)
