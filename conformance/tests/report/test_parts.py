"""Plots, ladders and the pairing of both capture points."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER, Captured
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.protocols.pep.suite import SUITE as PEP
from bentpipe_conformance.protocols.tcp.codec import Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.report.ladder import LIMIT, ladder, lanes
from bentpipe_conformance.report.plot import close_view, draw, nice_ticks, whole_view
from bentpipe_conformance.report.transit import match

if TYPE_CHECKING:
    from bentpipe_conformance.engine.scene import Scene


def scene_of(trace: Trace) -> Scene | None:
    return SNR.reporter.scene(trace, ())


def packet(seq: int, size: int = 10, back: bool = False) -> bytes:
    ends = ("2.2.2.2", "1.1.1.1", 2, 1) if back else ("1.1.1.1", "2.2.2.2", 1, 2)
    return build(Tcp(*ends, seq, 0, 0x10, 100, b"x" * size))


def routed(data: bytes) -> bytes:
    return data[:8] + b"\x3f" + data[9:10] + b"\0\0" + data[12:]


def test_lost_original_is_told_from_its_equal_retransmission() -> None:
    first, second = packet(1), packet(11)
    trace = read_trace([
        Captured(0.0, "iut", True, first),
        Captured(0.1, "iut", True, second),
        Captured(0.4, "peer", True, routed(second)),
        Captured(0.9, "iut", True, first),
        Captured(1.2, "peer", True, routed(first)),
    ], suite=SNR)  # fmt: skip
    transit = match(trace)
    assert transit.lost_forward == {1}
    assert transit.at_peer == {2: 0.4, 3: 1.2}


def test_lost_retransmission_is_told_from_its_equal_original() -> None:
    first, second = packet(1), packet(11)
    trace = read_trace([
        Captured(0.0, "iut", True, first),
        Captured(0.1, "iut", True, second),
        Captured(0.3, "peer", True, routed(first)),
        Captured(0.4, "peer", True, routed(second)),
        Captured(0.9, "iut", True, first),
        Captured(1.5, "iut", True, packet(21)),
    ], suite=SNR)  # fmt: skip
    assert match(trace).lost_forward == {3}  # and not packet 4, which was still under way


def test_packet_lost_on_the_way_to_the_implementation_is_a_row_of_its_own() -> None:
    trace = read_trace([
        Captured(0.0, "peer", False, packet(1, back=True)),
        Captured(0.1, "peer", False, packet(11, back=True)),
        Captured(0.4, "iut", False, routed(packet(11, back=True))),
    ], suite=SNR)  # fmt: skip
    transit = match(trace)
    assert [p.number for p in transit.lost_return] == [1]
    rows = ladder(trace, transit, (), SNR)
    assert [(row.number, row.at_iut, row.at_peer, row.lost) for row in rows] == [
        (0, None, 0.0, True),
        (1, 0.4, 0.1, False),
    ]


def test_flood_of_equal_packets_is_paired_in_order() -> None:
    captured = []
    for n in range(3000):
        captured.append(Captured(n * 1e-4, "iut", True, packet(1)))
        captured.append(Captured(n * 1e-4 + 0.3, "peer", True, packet(1)))
    transit = match(read_trace(sorted(captured, key=lambda item: item.time), suite=SNR))
    assert transit.lost_forward == frozenset()
    assert len(transit.at_peer) == 3000


def test_capture_at_one_point_only_says_nothing_of_losses() -> None:
    transit = match(read_trace([Captured(0.0, "iut", True, packet(1))], suite=SNR))
    assert not transit.known
    assert transit.lost_forward == frozenset()


def traces(sample: Any) -> dict[str, Trace]:
    return {record.id.split("/")[1]: trace for record, trace in sample.traces()}


@pytest.mark.parametrize(
    ("name", "sends", "segments"), [("recovery", True, 140), ("receiver", False, 60)]
)
def test_scene_shows_the_direction_of_the_data(
    sample: Any, name: str, sends: bool, segments: int
) -> None:
    scene = scene_of(traces(sample)[name])
    assert scene is not None
    assert scene.iut_sends is sends
    assert len({mark.start for mark in scene.data}) == segments
    assert scene.data[0].start == 0
    assert any(mark.again for mark in scene.data)
    assert any(mark.blocks and mark.duplicate for mark in scene.acks)


def test_lost_segments_of_the_sample_are_found(sample: Any) -> None:
    trace = traces(sample)["fast-retransmit"]
    scene = scene_of(trace)
    assert scene is not None
    lost = match(trace).lost_forward
    assert [m.start // 1448 for m in scene.data if m.number in lost] == [25, 30, 31, 70]


def test_plot_shows_each_kind_of_mark(sample: Any) -> None:
    trace = traces(sample)["recovery"]
    scene = scene_of(trace)
    assert scene is not None
    view = whole_view(scene)
    close = close_view(scene, (84,))
    assert view is not None
    assert close is not None
    assert view.start < close.start < close.end < view.end
    drawing = draw(
        scene, view, label="<a>", highlighted=(84,), lost=match(trace).lost_forward, frame=close,
        unit="octets",
    )  # fmt: skip
    assert set(re.findall(r'class="(\w+)"', drawing)) == {
        "plot", "grid", "axis", "unit", "zoomed", "window", "sack", "ack", "dup", "new", "again",
        "lost", "mark", "marked",
    }  # fmt: skip
    assert "#84</text>" in drawing
    assert 'aria-label="&lt;a&gt;"' in drawing


def test_higher_offset_is_drawn_higher_and_later_further_right(sample: Any) -> None:
    scene = scene_of(traces(sample)["recovery"])
    assert scene is not None
    view = whole_view(scene)
    assert view is not None
    first, last = scene.data[0], scene.data[-1]
    assert view.x(first.time) < view.x(last.time)
    assert view.y(first.start) > view.y(last.start)


def test_enlargement_of_the_whole_is_left_out(sample: Any) -> None:
    scene = scene_of(traces(sample)["timeout"])
    assert scene is not None
    assert close_view(scene, (3,)) is None
    assert close_view(scene, (999,)) is None


def test_trace_without_connection_has_no_scene() -> None:
    assert scene_of(read_trace([], suite=SNR)) is None
    assert scene_of(read_trace([Captured(0.0, "iut", True, b"junk")], suite=SNR)) is None


def test_ladder_shows_the_surroundings_and_counts_the_rest(sample: Any) -> None:
    trace = traces(sample)["recovery"]
    rows = ladder(trace, match(trace), (84, 41), SNR)
    assert sum(row.skipped or 1 for row in rows) == len(trace.at("iut"))
    assert [row.number for row in rows if row.marked] == [41, 84]
    marked = next(row for row in rows if row.number == 84)
    assert marked.notes == ("transmission 2",)
    assert marked.what.replace("\u202f", "") == "data 37648–39096"
    again = ladder(trace, match(trace), range(1, 400), SNR)
    assert sum(not row.skipped for row in again) <= LIMIT + 13


def test_packets_of_a_box_to_its_client_are_not_lost_on_the_link() -> None:
    """The link is behind the server's side; what is not sent over it cannot be lost there."""
    sides = ((0.0, CLIENT, False), (0.1, SERVER, True), (0.2, SERVER, True), (0.3, CLIENT, True))
    captured = [
        Captured(at, "iut", outgoing, packet(number), side)
        for number, (at, side, outgoing) in enumerate(sides)
    ]
    captured += [Captured(0.4, "peer", True, packet(1)), Captured(9.0, "peer", True, packet(7))]
    trace = read_trace(captured, suite=PEP)
    transit = match(trace)
    assert transit.lost_forward == {3}
    assert transit.at_peer == {2: 0.4}
    assert lanes(trace) == (("client", "box"), ("", "server"))
    rows = [row for row in ladder(trace, transit, (), PEP) if row.number]
    assert [(row.lane, row.rightward) for row in rows] == [
        (0, True), (1, True), (1, True), (0, False),
    ]  # fmt: skip


def test_ladder_tells_oddities_apart() -> None:
    damaged = bytearray(packet(50))
    damaged[-1] ^= 1
    trace = read_trace([
        Captured(0.0, "iut", True, b"\x60not ip"),
        Captured(0.1, "iut", True, bytes(damaged)),
    ], suite=SNR)  # fmt: skip
    rows = ladder(trace, match(trace), (1,), SNR)
    assert [(row.what, row.notes) for row in rows] == [
        ("not TCP over IP, 7 octets", ()),
        ("ack · 10 octets of data", ("wrong checksum",)),
    ]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 10.0, ["0", "2", "4", "6", "8", "10"]),
        (0.1, 0.35, ["0.10", "0.15", "0.20", "0.25", "0.30", "0.35"]),
        (0.0, 250_000.0, ["0"] + [f"{n}\u202f000" for n in (50, 100, 150, 200, 250)]),
        (5.0, 5.0, []),
        (0.0, float("inf"), []),
    ],
)  # fmt: skip
def test_ticks_are_round_numbers(low: float, high: float, texts: list[str]) -> None:
    assert [text for _, text in nice_ticks(low, high, 5)] == texts
