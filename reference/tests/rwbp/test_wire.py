"""The codecs agree with the specification's test vectors."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from bentpipe_reference.common.address import address_number
from bentpipe_reference.common.encapsulation import emit_datagram
from bentpipe_reference.common.ipv4 import emit_ipv4
from bentpipe_reference.rwbp.credit import CreditFrame, MalformedFrame, frame_datagram, read_packet
from bentpipe_reference.rwbp.option import counting_option
from bentpipe_reference.tcp.wire import Flags, WireError, parse_packet

VECTORS = json.loads(
    resources.files("bentpipe_spec").joinpath("rwbp", "vectors.json").read_text(encoding="utf-8")
)
GATEWAY = address_number("192.0.2.254")


def datagram(vector: dict[str, Any]) -> bytes:
    over = vector["over"]
    source, destination = address_number(over["source"]), address_number(over["destination"])
    octets = bytes.fromhex(vector["octets"])
    return emit_ipv4(over["protocol"], source, destination, octets)


def cases(protocol: int, *, malformed: bool) -> list[Any]:
    return [
        pytest.param(vector, id=vector["name"])
        for vector in VECTORS["packets"]
        if vector["over"]["protocol"] == protocol and ("malformed" in vector) == malformed
    ]


@pytest.mark.parametrize("vector", cases(6, malformed=False))
def test_segment_when_well_formed_is_read_as_the_vector_says(vector: dict[str, Any]) -> None:
    fields = vector["fields"]
    segment = parse_packet(datagram(vector))
    assert (segment.seq, segment.ack, segment.window) == (
        fields["seq"], fields["ack"], fields["window"],
    )  # fmt: skip
    assert {flag.name for flag in Flags if segment.flags & flag} == set(fields["flags"])
    assert segment.payload == bytes.fromhex(fields["data"])
    option = counting_option(segment)
    read = None if option is None else {"interval": option.interval, "unit": option.unit}
    assert read == fields["rwbp"]
    syn = bool(segment.flags & Flags.SYN)
    assert (syn and option is not None and segment.sack_permitted) == fields["offers"]


@pytest.mark.parametrize("vector", cases(6, malformed=True))
def test_segment_when_malformed_is_discarded(vector: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        parse_packet(datagram(vector))


@pytest.mark.parametrize("vector", cases(17, malformed=False))
def test_credit_frame_when_valid_is_read_and_written_alike(vector: dict[str, Any]) -> None:
    fields = vector["fields"]
    proxy = address_number(vector["over"]["destination"])
    frame = read_packet(datagram(vector), GATEWAY, proxy)
    assert frame == CreditFrame(fields["epoch"], fields["arrived"], fields["limit"])
    assert (
        read_packet(emit_datagram(frame_datagram(frame, GATEWAY, proxy)), GATEWAY, proxy) == frame
    )


@pytest.mark.parametrize("vector", cases(17, malformed=True))
def test_credit_frame_when_not_valid_is_refused(vector: dict[str, Any]) -> None:
    proxy = address_number(vector["over"]["destination"])
    with pytest.raises(MalformedFrame):
        read_packet(datagram(vector), GATEWAY, proxy)


def test_credit_frame_when_for_another_host_is_refused() -> None:
    vector = next(each for each in VECTORS["packets"] if each["name"] == "credit")
    with pytest.raises(MalformedFrame):
        read_packet(datagram(vector), GATEWAY, address_number("192.0.2.77"))
