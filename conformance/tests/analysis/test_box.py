"""Two captures on both sides of a box: stories told, cut into two files, their clocks apart."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bentpipe_conformance.analysis.box import analyze_box
from bentpipe_conformance.analysis.capture import Analysis
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from bentpipe_conformance.evidence.pcapng import write_pcapng
from bentpipe_conformance.protocols.pep.story import Story, octets
from bentpipe_conformance.protocols.pep.suite import SUITE
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN
from click.testing import CliRunner

START = 1_700_000_000 * 10**9
DELAY = 0.002
"""Seconds that the box takes."""

Files = Callable[..., tuple[Path, Path]]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A story as two files, the second of whose clock is so many seconds ahead."""

    def made(
        story: Story, ahead: float = 0.0, *, drop: int = -1, kept: int = 9999
    ) -> tuple[Path, Path]:
        paths = []
        for side, shift in ((CLIENT, 0.0), (SERVER, ahead)):
            frames = [
                Frame(
                    0,
                    START + round((item.time + shift) * 1e9),
                    item.data[:kept],
                    101,
                    original_length=len(item.data),
                )
                for number, item in enumerate(story.packets)
                if item.side == side and number != drop
            ]
            file = io.BytesIO()
            write_pcapng(file, frames, name="eth0", link_type=101)
            paths.append(tmp_path / f"{side}.pcapng")
            paths[-1].write_bytes(file.getvalue())
        return paths[0], paths[1]

    return made


def judged(paths: tuple[Path, Path]) -> Analysis:
    return analyze_box(*paths, SUITE, "pep1", stated=Story.claims)


def status(analysis: Analysis) -> dict[str, str]:
    return {row.requirement.id: row.status for row in analysis.rows}


def relayed(*, until: int = 1000, flipped: bool = False) -> Story:
    """Octets both ways through a box that takes them before they are delivered."""
    story = Story().opened()
    story.data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000, after=DELAY)
    wrong = b"\xff" + octets(1, until)
    story.say(SERVER, True, ACK, 0, payload=wrong if flipped else octets(0, until), after=DELAY)
    story.ack(SERVER, False, until, after=0.3)
    story.data(SERVER, False, 0, 500, ack=until).data(CLIENT, True, 0, 500, ack=1000, after=DELAY)
    return story


def ended(story: Story, taken_after: float) -> Story:
    """The client's FIN; the box acknowledges it so long before the server has the octets."""
    story.say(CLIENT, False, FIN | ACK, 1000, 500)
    story.say(CLIENT, True, ACK, 500, 1001, after=taken_after)
    return story


@pytest.mark.parametrize("ahead", [0.0, 7201.5, -86_400.0])
def test_right_box_is_not_accused_whatever_the_clocks_say(files: Files, ahead: float) -> None:
    analysis = judged(files(relayed(), ahead))
    found = status(analysis)
    assert "violated" not in found.values()
    assert "unclear" not in found.values()
    assert found["PEP-TR-001"] == found["PEP-OP-001"] == found["PEP-TR-002"] == "holds"
    told = [item.sentence for item in analysis.quality.remarks if item.kind == "clocks"]
    assert bool(told) == (ahead != 0.0)
    if told:
        assert float(told[0].split(" is ")[1].split(" s ahead")[0]) == pytest.approx(
            ahead, abs=0.01
        )


@pytest.mark.parametrize("ahead", [0.0, 7201.5])
def test_box_that_changes_an_octet_is_caught_with_the_frames_of_both_files(
    files: Files, ahead: float
) -> None:
    analysis = judged(files(relayed(flipped=True), ahead))
    (row,) = [row for row in analysis.rows if row.requirement.id == "PEP-TR-001"]
    assert row.status == "violated"
    assert "(server.pcapng 4" in row.violations[0][1].sentence


def test_end_acknowledged_before_the_octets_are_delivered_is_caught(files: Files) -> None:
    """The server acknowledges 300 ms later than the FIN is acknowledged: no clock explains it."""
    story = Story().opened().data(SERVER, False, 0, 500).data(CLIENT, True, 0, 500, after=DELAY)
    story.data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000, after=DELAY)
    story.say(SERVER, True, ACK, 0, 500, octets(0, 1000), after=DELAY)
    ended(story, DELAY).say(SERVER, False, ACK, 500, 1000, after=0.3)
    story.data(SERVER, False, 500, 600, ack=1000).data(
        CLIENT, True, 500, 600, ack=1001, after=DELAY
    )
    assert status(judged(files(story, 3600.0)))["PEP-RE-002"] == "violated"


def test_end_acknowledged_within_the_doubt_about_the_clocks_is_unclear(files: Files) -> None:
    story = Story().opened().data(SERVER, False, 0, 500).data(CLIENT, True, 0, 500, after=DELAY)
    story.data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000, after=DELAY)
    story.say(SERVER, True, ACK, 0, 500, octets(0, 1000), after=DELAY)
    story.say(CLIENT, False, FIN | ACK, 1000, 500, after=0.3)
    story.say(SERVER, False, ACK, 500, 1000, after=DELAY / 8)
    story.say(CLIENT, True, ACK, 500, 1001, after=DELAY / 8)
    story.data(SERVER, False, 500, 600, ack=1000, after=0.1)
    story.data(CLIENT, True, 500, 600, ack=1001, after=DELAY)
    assert status(judged(files(story, 3600.0)))["PEP-RE-002"] == "unclear"


def test_reset_that_becomes_an_end_as_the_last_packet_of_all_is_caught(files: Files) -> None:
    story = relayed().say(SERVER, True, ACK, 1000, 500).reset(SERVER, False, 500)
    story.say(CLIENT, True, FIN | ACK, 500, 1000, after=DELAY).ack(CLIENT, False, 1000)
    found = status(judged(files(story, 3600.0)))
    assert found["PEP-RE-003"] == found["PEP-RE-007"] == "violated"


@pytest.mark.parametrize(("goes_on", "expected"), [(True, "violated"), (False, "not exercised")])
def test_what_follows_the_end_of_the_other_file_accuses_nobody(
    files: Files, goes_on: bool, expected: str
) -> None:
    """The box may have delivered the rest when nobody looked."""
    story = ended(relayed(until=400), 0.5)
    if goes_on:
        story.data(SERVER, False, 500, 600, ack=400).data(CLIENT, True, 500, 600, ack=1001)
    assert status(judged(files(story, 10.0)))["PEP-RE-002"] == expected


def test_capture_that_lacks_a_packet_accuses_nobody(files: Files) -> None:
    story = relayed()
    data = next(number for number, item in enumerate(story.packets) if len(item.data) > 1000)
    analysis = judged(files(story, 0.0, drop=data))
    assert set(status(analysis).values()) <= {"not judgeable", "not exercised", "not claimed"}
    assert any("lacks packets" in item.sentence for item in analysis.quality.remarks)


def test_files_in_the_wrong_order_are_said_to_be(files: Files) -> None:
    client, server = files(relayed())
    with pytest.raises(CaptureError, match="give them in the other order"):
        judged((server, client))


def test_captures_of_different_connections_are_no_box(files: Files) -> None:
    _, server = files(Story(ports=(1, 2)).opened())
    other = server.rename(server.with_name("other.pcapng"))
    client, _ = files(relayed())
    with pytest.raises(CaptureError, match="no connection in common"):
        judged((client, other))


@pytest.mark.parametrize("side", [0, 1])
def test_captures_of_one_side_twice_are_said_to_be(files: Files, side: int) -> None:
    paths = files(relayed())
    with pytest.raises(CaptureError, match="one towards its clients and one towards servers"):
        judged((paths[side], paths[side]))


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_capture_of_one_direction_alone_accuses_nobody(files: Files, side: str) -> None:
    """Else the box seems to accept before the server has, and to invent what it relays."""
    story = relayed().ack(SERVER, True, 500).ack(CLIENT, False, 500)
    story.packets = [
        item for item in story.packets if item.side != side or item.outgoing == (side == SERVER)
    ]
    analysis = judged(files(story, 7201.5))
    assert set(status(analysis).values()) <= {"not judgeable", "not exercised", "not claimed"}
    told = [item.sentence for item in analysis.quality.remarks]
    assert f"the capture on the {side}'s side lacks the answers to calls: it is not judged" in told


def test_connection_that_the_box_leaves_whole_is_not_judged_and_another_one_is(
    files: Files,
) -> None:
    whole = Story(ports=(1, 2), numbers=dict.fromkeys(relayed().numbers, 7))
    story = relayed()
    story.packets += whole.opened().packets
    analysis = judged(files(story))
    assert status(analysis)["PEP-TR-001"] == "holds"
    assert analysis.quality.judged == 1
    (told,) = (item for item in analysis.quality.remarks if item.kind == "gaps")
    assert told.sentence == "the box has left it whole: it is not judged"


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_truncated_capture_is_judged_as_far_as_it_goes(files: Files, side: str) -> None:
    story = relayed(flipped=True).ack(SERVER, True, 500).ack(CLIENT, False, 500)
    cut = files(story)[side == SERVER]
    cut.write_bytes(cut.read_bytes()[:-7])
    paths = [str(cut.with_name(f"{name}.pcapng")) for name in (CLIENT, SERVER)]
    refused = CliRunner().invoke(bentpipe, ["analyze", *paths, "--box"])
    assert refused.exit_code == 3
    assert "Add --partial to judge what precedes." in refused.output
    done = CliRunner().invoke(bentpipe, ["analyze", *paths, "--box", "--partial", "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 1, done.output
    (row,) = [row for row in told["requirements"] if row["id"] == "PEP-TR-001"]
    assert row["status"] == "violated"
    assert "What precedes is judged" in str(told["quality"]["remarks"])


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_right_box_is_not_accused_wherever_a_capture_is_truncated(files: Files, side: str) -> None:
    story = ended(relayed(), 0.7).fin(SERVER, True, 1000, ack=500).ack(SERVER, False, 1001)
    whole = [path.read_bytes() for path in files(story, -3600.0)]
    paths = files(story, -3600.0)
    for octets_left in range(200, len(whole[side == SERVER]), 40):
        paths[side == SERVER].write_bytes(whole[side == SERVER][:octets_left])
        analysis = analyze_box(*paths, SUITE, "pep1", stated=Story.claims, partial=True)
        assert "violated" not in status(analysis).values(), octets_left


def test_files_of_one_name_are_told_apart(files: Files, tmp_path: Path) -> None:
    paths = []
    for path in files(relayed(flipped=True)):
        folder = tmp_path / path.stem
        folder.mkdir()
        paths.append(path.rename(folder / "eth0.pcapng"))
    rows = judged((paths[0], paths[1])).rows
    (row,) = [row for row in rows if row.requirement.id == "PEP-TR-001"]
    assert "server/eth0.pcapng 4" in row.violations[0][1].sentence


def test_capture_of_headers_alone_is_refused(files: Files) -> None:
    with pytest.raises(CaptureError, match="tcpdump -s 0"):
        judged(files(relayed(), kept=60))


def test_command_prints_the_rows_and_its_status(files: Files) -> None:
    paths = [str(path) for path in files(relayed(flipped=True), 7201.5)]
    done = CliRunner().invoke(bentpipe, ["analyze", *paths, "--box", "--json"])
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    (row,) = [row for row in told["requirements"] if row["id"] == "PEP-TR-001"]
    assert row["status"] == "violated"
    assert told["quality"]["judged"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--box"], "two with --box"),
        (["OTHER"], "give one capture"),
        (["OTHER", "--box", "--iut", "192.0.2.1"], "do not go with --box"),
    ],
)
def test_captures_and_options_that_do_not_fit_are_wrong_usage(
    files: Files, words: list[str], sentence: str
) -> None:
    client, server = files(relayed())
    called = [str(server) if word == "OTHER" else word for word in words]
    done = CliRunner().invoke(bentpipe, ["analyze", str(client), *called])
    assert done.exit_code == 2
    assert sentence in done.output
