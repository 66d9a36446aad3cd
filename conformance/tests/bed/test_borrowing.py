"""Parts of borrowing an interface that need no kernel."""

import struct
from pathlib import Path

import pytest
from bentpipe_conformance.bed.arp import sender
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.netlink import RTA_DST, RTA_GATEWAY, RTA_OIF, Route, attribute, number
from bentpipe_conformance.iut.description import parse_description
from bentpipe_conformance.run import workplace
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.opening import load_link

BOX, OTHER = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])
MAC = b"\x02\x00\x00\x00\x00\x09"
KERNEL, STATIC = 2, 4


def arp_frame(address: bytes, *, protocol: int = 0x0800) -> bytes:
    packet = struct.pack("!HHBBH6s4s6s4s", 1, protocol, 6, 4, 2, MAC, address, bytes(6), bytes(4))
    return bytes(12) + b"\x08\x06" + packet


def test_reply_of_the_box_tells_its_ethernet_address() -> None:
    assert sender(arp_frame(BOX), BOX) == MAC
    assert sender(arp_frame(BOX) + bytes(18), BOX) == MAC


@pytest.mark.parametrize(
    "frame", [arp_frame(OTHER), arp_frame(BOX, protocol=0x86DD), arp_frame(BOX)[:-1], b""]
)
def test_frame_of_others_or_damaged_tells_nothing(frame: bytes) -> None:
    assert sender(frame, BOX) is None


def route(prefix: int, origin: int, scope: int, table: int = 254) -> Route:
    body = struct.pack("=BBBBBBBBI", 2, prefix, 0, 0, table, origin, scope, 1, 0)
    body += attribute(RTA_DST, bytes(4)) + number(RTA_OIF, 7) + attribute(RTA_GATEWAY, BOX)
    return Route(body)


def test_route_of_somebody_is_laid_again_through_the_interface() -> None:
    found = route(24, STATIC, 0)
    assert (found.interface, found.configured, found.default) == (7, True, False)
    assert Route(found.through(9)).interface == 9
    assert len(found.through(9)) == len(found.through(7))


def test_route_of_the_kernel_or_another_table_is_left_to_them() -> None:
    assert not route(24, KERNEL, 253).configured
    assert not route(24, STATIC, 0, table=255).configured
    assert route(0, STATIC, 0).default


def test_route_without_an_interface_leads_through_none() -> None:
    assert Route(struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, STATIC, 0, 1, 0)).interface == 0


@pytest.mark.parametrize("bed", ["uml", "uml-virtual", "simulation"])
def test_box_is_wanted_in_a_guest_it_is_refused(bed: str) -> None:
    attach = {
        "kind": "address", "interface": "eth1", "address": "192.0.2.1", "gateway": "192.0.2.2/24",
    }  # fmt: skip
    box = parse_description({"id": "box", "name": "Box", "attach": attach}, Path("box.toml"))
    with pytest.raises(BedError, match="host"):
        workplace.choose_workplace(bed, box, load_link("geo"))


@pytest.mark.parametrize(
    ("single", "jobs", "lanes"), [(True, None, 1), (True, 4, 1), (False, None, 8)]
)
def test_one_box_has_one_lane(
    monkeypatch: pytest.MonkeyPatch, single: bool, jobs: int | None, lanes: int
) -> None:
    started: list[tuple[int, int]] = []
    monkeypatch.setattr(
        workplace, "process_crew", lambda order, size: started.append((order.lanes, size))
    )
    cases = tuple(str(number) for number in range(20))
    order = Assignment("box", "geo", "rfc", "snr", cases, "bundle", "claims", 1)
    workplace.Workplace("host", "", single=single).start(order, jobs)
    assert started == [(lanes, 1)]
