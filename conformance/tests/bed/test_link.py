"""Options of netem, and what a check reports."""

import json
import struct
from dataclasses import asdict, replace

import pytest
from bentpipe_conformance.bed import netem
from bentpipe_conformance.bed.check import (
    BedReport,
    measure,
    percentile,
    ping,
    profile_from_json,
)
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.netlink import Netlink, attribute
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.link.profile import Direction, load_profiles

GOOD = BedReport(
    place="uml",
    profile="geo",
    rtt_expected=0.6,
    rtt_mean=0.601,
    rtt_error_mean=0.001,
    rtt_error_p99=0.002,
    forward_bit_s=1.3e6,
    return_bit_s=None,
    forward_expected=1.3e6,
    return_expected=None,
    sent=80,
    lost=0,
    lossy=False,
    timing_error=0.002,
)


class Recorder(Netlink):
    """Keeps what would be laid out."""

    def __init__(self) -> None:
        self.laid: list[tuple[str, str, int, int]] = []
        self.options: list[bytes] = []

    def add_qdisc(
        self, name: str, kind: str, options: bytes, handle: int, parent: int = -1
    ) -> None:
        self.laid.append((name, kind, handle, parent))
        self.options.append(options)


def test_attribute_is_padded_and_says_its_true_length() -> None:
    assert attribute(3, b"abcde") == struct.pack("=HH", 9, 3) + b"abcde" + bytes(3)


def test_limited_direction_has_delay_line_and_bottleneck() -> None:
    recorder = Recorder()
    netem.lay_out(recorder, "sat_a", Direction(1.3e6, 0.3, 50), ethernet=True)
    assert [kind for _, kind, _, _ in recorder.laid] == ["netem", "netem"]
    assert recorder.laid[1][3] == recorder.laid[0][2] | 1
    line, bottleneck = recorder.options
    assert struct.unpack_from("=I", line, 4)[0] == netem.IN_FLIGHT
    assert struct.unpack_from("=q", line, 28)[0] == 300_000_000
    # One more than the queue, because netem counts the packet on the wire.
    assert struct.unpack_from("=I", bottleneck, 4)[0] == 51
    rate, overhead = struct.unpack_from("=Ii", bottleneck, 24 + 12 + 4)
    assert (rate, overhead) == (162_500, -14)


def test_unlimited_direction_has_no_bottleneck() -> None:
    recorder = Recorder()
    netem.lay_out(recorder, "sat_b", Direction(delay_s=0.1), ethernet=False)
    assert len(recorder.laid) == 1


def test_certain_loss_is_the_largest_share() -> None:
    assert struct.unpack_from("=I", netem.options(limit=1, loss=1.0), 8)[0] == 0xFFFFFFFF


@pytest.mark.parametrize(
    "direction",
    [Direction(ber=1e-6), Direction(reorder_probability=0.1, reorder_delay_s=0.01)],
)
def test_direction_netem_cannot_do_is_refused(direction: Direction) -> None:
    with pytest.raises(BedError, match="simulation"):
        netem.lay_out(Recorder(), "sat_a", direction, ethernet=False)


def test_reordering_waits_behind_the_rate() -> None:
    recorder = Recorder()
    way = Direction(1.3e6, 0.3, 50, reorder_probability=0.25, reorder_delay_s=0.03)
    netem.add_reordering(recorder, "sat_a", way, seed=7)
    assert recorder.laid == [("sat_a", "netem", netem.REORDERING, netem.BOTTLENECK | 1)]
    options = recorder.options[0]
    # A gap of 1, so that every packet is drawn for, and the share that does not wait.
    assert struct.unpack_from("=I", options, 12)[0] == 1
    assert struct.unpack_from("=HHII", options, 24) == (12, 3, round(0.75 * 0xFFFFFFFF), 0)
    assert struct.unpack_from("=HHQ", options, 36) == (12, 14, 7)
    assert struct.unpack_from("=HHq", options, 48) == (12, 10, 30_000_000)


def test_reordering_without_a_rate_is_refused() -> None:
    way = Direction(delay_s=0.3, reorder_probability=0.25, reorder_delay_s=0.03)
    with pytest.raises(BedError, match="rate_bit_s"):
        netem.add_reordering(Recorder(), "sat_a", way)


def test_report_survives_json() -> None:
    assert BedReport(**json.loads(json.dumps(asdict(GOOD)))) == GOOD


def test_good_bed_has_no_faults() -> None:
    assert GOOD.faults() == ()


def test_bed_lost_packets_is_a_fault_unless_the_link_loses_some() -> None:
    assert "lost 3 of 80" in replace(GOOD, lost=3).faults()[0]
    assert replace(GOOD, lost=3, lossy=True).faults() == ()


def test_rate_is_off_is_a_fault_that_names_the_way() -> None:
    faults = replace(GOOD, forward_bit_s=1.2e6).faults()
    assert len(faults) == 1
    assert "to the tester is 1200.0 kb/s instead of 1300.0" in faults[0]


@pytest.mark.parametrize(
    ("busy", "attempts", "fault"), [(0, 1, False), (2, 3, False), (9, 3, True)]
)
def test_bed_at_fault_is_measured_again_but_not_for_ever(
    busy: int, attempts: int, fault: bool
) -> None:
    reports = iter([*[replace(GOOD, forward_bit_s=1.25e6)] * busy, GOOD])
    report = measure(load_profiles()["geo"], lambda _profile: next(reports))
    assert report.attempts == attempts
    assert bool(report.faults()) is fault


def test_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(200)]
    assert percentile(values, 0.99) == 198.0
    assert percentile([5.0], 0.99) == 5.0
    assert percentile([], 0.99) == 0.0


def test_checksum_of_a_packet_with_its_checksum_is_zero() -> None:
    packet = ping("10.78.0.1", 7)
    assert internet_checksum(packet[:20]) == 0
    assert internet_checksum(packet[20:]) == 0
    assert internet_checksum(b"\x01") == 0xFEFF


def test_profile_travels_as_json() -> None:
    profile = load_profiles()["dbs-dialup"]
    assert profile_from_json(json.dumps(asdict(profile))) == profile
