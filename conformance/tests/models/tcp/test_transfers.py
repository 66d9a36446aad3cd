from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.evidence.pcapng import LINKTYPE_RAW, write_pcapng
from bentpipe_conformance.models.tcp.transfers import CaptureProblem, Transfer, read_transfer
from bentpipe_conformance.models.tcp.windows import cut_windows
from bentpipe_conformance.protocols.tcp.codec import dissect
from bentpipe_reference.tcp.config import EndpointConfig

from .conftest import Recorder, write

CONFIG = EndpointConfig(variant="sack-newreno-rfc")
SENDER, RECEIVER = ("10.77.0.2", 40000), ("10.78.0.2", 9)


@pytest.fixture
def frames(recorded: Recorder) -> list[Frame]:
    return recorded(CONFIG, 30, drops=[12, 15])


def read(folder: Path, frames: list[Frame], chosen: str | None = None) -> Transfer:
    return read_transfer(write(folder / "x.pcapng", frames), chosen)


def lack(folder: Path, frames: list[Frame]) -> tuple[int, str]:
    found = read(folder, frames).lack
    assert found is not None
    return found.packet, found.sentence


def data(frames: list[Frame]) -> list[int]:
    """Indexes of the frames with data."""
    return [i for i, frame in enumerate(frames) if dissect(frame.data).payload]


def test_whole_capture_lacks_nothing(tmp_path: Path, frames: list[Frame]) -> None:
    transfer = read(tmp_path, frames)
    assert (transfer.sender, transfer.receiver, transfer.lack) == (SENDER, RECEIVER, None)
    assert len(transfer.events) == transfer.total == len(frames) - 2


def test_named_connection_is_taken_in_the_named_direction(
    tmp_path: Path, frames: list[Frame]
) -> None:
    transfer = read(tmp_path, frames, "10.77.0.2:40000-10.78.0.2:9")
    assert transfer.sender == SENDER and transfer.lack is None
    other = read(tmp_path, frames, "10.78.0.2:9-10.77.0.2:40000")
    assert other.lack is not None and other.lack.packet == 0


def test_capture_without_handshake_starts_late(tmp_path: Path, frames: list[Frame]) -> None:
    assert "starts late" in lack(tmp_path, frames[3:])[1]


def test_connection_without_sack_cannot_be_judged(tmp_path: Path, recorded: Recorder) -> None:
    found = lack(tmp_path, recorded(replace(CONFIG, sack=False), 20))
    assert found == (0, "SACK was not negotiated")


def test_segment_missing_from_the_capture_ends_what_is_judged(
    tmp_path: Path, frames: list[Frame]
) -> None:
    gone = data(frames)[3]
    packet, sentence = lack(tmp_path, frames[:gone] + frames[gone + 1 :])
    assert packet == gone + 1 and "was not captured" in sentence
    left = read(tmp_path, frames[:gone] + frames[gone + 1 :])
    assert left.events and all(event.packet.number <= gone for event in left.events)


def test_acknowledgment_of_what_was_never_captured_ends_what_is_judged(
    tmp_path: Path, frames: list[Frame]
) -> None:
    gone = data(frames)[5:]
    cut = [frame for i, frame in enumerate(frames) if i not in gone]
    assert "acknowledges data that was never captured" in lack(tmp_path, cut)[1]


def test_capture_of_the_receivers_side_is_told_from_the_handshake(
    tmp_path: Path, recorded: Recorder
) -> None:
    packet, sentence = lack(tmp_path, recorded(CONFIG, 30, far=True))
    assert packet == 0 and "not taken at the sender's side" in sentence


def test_two_capture_points_in_one_file_refused(
    tmp_path: Path, recorded: Recorder, frames: list[Frame]
) -> None:
    both = sorted([*frames, *recorded(CONFIG, 30, drops=[12, 15], far=True)],
                  key=lambda frame: frame.time_ns or 0)  # fmt: skip
    assert "twice, as if from two capture points" in lack(tmp_path, both)[1]


def test_packets_of_two_interfaces_refused(tmp_path: Path, frames: list[Frame]) -> None:
    path = tmp_path / "two.pcapng"
    with path.open("wb") as file:
        write_pcapng(file, frames[:20], name="eth0")
        write_pcapng(file, frames[20:], name="eth1")
    found = read_transfer(path).lack
    assert found is not None and found.sentence.endswith("mixed: eth0, eth1")


def test_short_round_trip_tells_nothing(tmp_path: Path, recorded: Recorder) -> None:
    assert "too short to tell" in lack(tmp_path, recorded(CONFIG, 30, link="lan"))[1]


def test_capture_without_an_acknowledgment_refused(tmp_path: Path, frames: list[Frame]) -> None:
    assert "nothing is acknowledged" in lack(tmp_path, frames[:5])[1]


def test_header_cut_by_the_snap_length_ends_what_is_judged(
    tmp_path: Path, frames: list[Frame]
) -> None:
    at = data(frames)[5]
    whole = frames[at]
    frames[at] = replace(whole, data=whole.data[:45], original_length=len(whole.data))
    packet, sentence = lack(tmp_path, frames)
    assert packet == at + 1 and "header of packet" in sentence


def test_payload_cut_by_the_snap_length_does_no_harm(tmp_path: Path, frames: list[Frame]) -> None:
    cut = [replace(f, data=f.data[:100], original_length=len(f.data)) for f in frames]
    assert read(tmp_path, cut).lack is None


def test_icmp_about_the_path_ends_what_is_judged(tmp_path: Path, frames: list[Frame]) -> None:
    about = frames[10].data[:28]
    message = bytes([3, 4, 0, 0, 0, 0, 5, 0]) + about
    packet = bytes([0x45, 0]) + (20 + len(message)).to_bytes(2, "big") + bytes(4)
    packet += bytes([64, 1, 0, 0, 10, 0, 0, 1]) + about[12:16] + message
    icmp = Frame(0, frames[20].time_ns, packet, LINKTYPE_RAW)
    assert lack(tmp_path, [*frames[:20], icmp, *frames[20:]])[0] == 21


def test_second_connection_on_the_same_ports_ends_what_is_judged(
    tmp_path: Path, recorded: Recorder, frames: list[Frame]
) -> None:
    late = (frames[-1].time_ns or 0) + 1_000_000_000
    again = [replace(f, time_ns=(f.time_ns or 0) + late) for f in recorded(CONFIG, 5, seed=9)]
    packet, sentence = lack(tmp_path, [*frames, *again])
    assert packet == len(frames) + 1 and "another connection" in sentence


def test_time_running_backwards_ends_what_is_judged(tmp_path: Path, frames: list[Frame]) -> None:
    frames[20] = replace(frames[20], time_ns=0)
    assert lack(tmp_path, frames) == (21, "time runs backwards at packet 21")


def test_truncated_file_is_judged_up_to_its_end(tmp_path: Path, frames: list[Frame]) -> None:
    path = write(tmp_path / "x.pcapng", frames)
    path.write_bytes(path.read_bytes()[:-700])
    transfer = read_transfer(path)
    assert transfer.lack is not None and "truncated" in transfer.lack.sentence
    assert transfer.events


@pytest.mark.parametrize(
    ("octets", "says"),
    [
        (b"", "is empty"),
        (b"nonsense", "neither a pcapng nor a pcap"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00", "truncated"),
    ],
)
def test_file_that_is_no_capture_refused(tmp_path: Path, octets: bytes, says: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(octets)
    with pytest.raises(CaptureProblem, match=says):
        read_transfer(path)


def test_capture_without_tcp_refused(tmp_path: Path) -> None:
    udp = bytes([0x45, 0, 0, 28]) + bytes(5) + bytes([17]) + bytes(18)
    with pytest.raises(CaptureProblem, match="no TCP segment"):
        read(tmp_path, [Frame(1, 0, udp, LINKTYPE_RAW)])


def test_capture_without_payload_refused(tmp_path: Path, frames: list[Frame]) -> None:
    with pytest.raises(CaptureProblem, match="no TCP payload"):
        read(tmp_path, frames[:2])


def test_several_connections_need_a_choice(tmp_path: Path, frames: list[Frame]) -> None:
    second = [
        replace(f, data=f.data.replace((40000).to_bytes(2, "big"), (40001).to_bytes(2, "big"), 1))
        for f in frames
    ]
    with pytest.raises(CaptureProblem, match="2 connections with data; choose one with --flow"):
        read(tmp_path, [*frames, *second])
    assert read(tmp_path, [*frames, *second], "10.77.0.2:40000-10.78.0.2:9").sender == SENDER


@pytest.mark.parametrize("chosen", ["odd", "10.0.0.1-10.0.0.2", "a:b-c:d", "1.2.3.4:1-5.6.7.8:2"])
def test_choice_of_no_connection_refused(tmp_path: Path, frames: list[Frame], chosen: str) -> None:
    with pytest.raises(CaptureProblem, match=r"names no connection|has no segment from"):
        read(tmp_path, frames, chosen)


def test_windows_share_what_may_be_under_way_and_nothing_else(
    tmp_path: Path, recorded: Recorder
) -> None:
    transfer = read(tmp_path, recorded(CONFIG, 400, drops=[60, 61, 250], link="leo-40"))
    assert transfer.flow is not None
    windows = cut_windows(transfer.flow, transfer.events)
    assert len(windows) > 2 and not any(window.weak for window in windows)
    numbers = [item.packet for w in windows for item in w.items[w.repeated :]]
    assert numbers == [event.packet.number for event in transfer.events]
    assert [w.fresh for w in windows] == sorted((w.fresh for w in windows), reverse=True)
    assert sum(w.retransmissions for w in windows) == 3
