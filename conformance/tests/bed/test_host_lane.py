"""A lane on this machine's own kernel, without netem, which few kernels of build machines have."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest
from bentpipe_conformance.bed import check, netem
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import Attachment, KernelLane
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_reference.common.link.profile import load_profiles

pytestmark = pytest.mark.bed
OWNER = """
import sys, time
from bentpipe_conformance.bed import lanes, netem
netem.lay_out = lambda *arguments, **options: None
from bentpipe_reference.common.link.profile import load_profiles
code = "import os; print('ready', flush=True); os.read(0, 1); import signal; signal.pause()"
lane = lanes.KernelLane(load_profiles()["lan"],
                        lanes.Attachment("namespace", ["{python}", "-IS", "-c", code]))
print(lane._process._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    try:
        NetworkNamespace().close()
    except BedError as error:
        pytest.skip(str(error))


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelLane]:
    monkeypatch.setattr(netem, "lay_out", lambda *arguments, **options: None)
    try:
        made = KernelLane(load_profiles()["lan"], Attachment("namespace", ()))
    except BedError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def test_ping_returns_through_the_lane(lane: KernelLane) -> None:
    address = lane.begin()
    lane.port.send(check.ping(address, 3))
    arrival = lane.port.receive(lane.port.now() + 5)
    assert arrival is not None
    assert arrival[1][12:16] == bytes([10, 77, 0, 2])
    captured = lane.end()
    assert [(packet.point, packet.outgoing) for packet in captured] == [
        ("peer", False),
        ("iut", False),
        ("iut", True),
        ("peer", True),
    ]
    assert all(0 <= packet.time < 5 for packet in captured)


def test_deadline_passes_nothing_is_received(lane: KernelLane) -> None:
    lane.begin()
    deadline = lane.port.now() + 0.01
    assert lane.port.receive(deadline) is None
    assert lane.port.now() >= deadline


def test_packet_that_is_none_is_refused(lane: KernelLane) -> None:
    lane.begin()
    with pytest.raises(BedError, match="does not take a packet of 3 octets"):
        lane.port.send(b"\xf0\x01\x02")


def test_every_case_has_an_address_of_its_own(lane: KernelLane) -> None:
    addresses = [lane.begin() for _ in range(600)]
    assert len(set(addresses)) == 600
    assert all(address.startswith("10.78.") for address in addresses)


def test_owner_is_killed_its_implementation_ends() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    told = owner.stdout.readline()
    if not told:
        owner.wait()
        owner.stdout.close()
        pytest.skip("no lane without TUN on this machine")
    handle = os.pidfd_open(int(told))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    ended, _, _ = select.select([handle], [], [], 10)
    os.close(handle)
    assert ended
