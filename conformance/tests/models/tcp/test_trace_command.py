from __future__ import annotations

import json
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_reference.tcp.config import EndpointConfig
from click.testing import CliRunner, Result

from .conftest import Recorder, write

TRACE = """{"event": "begin", "profile": "hk99"}
{"event": "send", "seq": 0, "octets": 100}
{"event": "send", "seq": 0, "octets": 100}
"""


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    jar = tmp_path / "tools.jar"
    jar.write_bytes(b"")
    monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    path = tmp_path / "x.ndjson"
    path.write_text(TRACE, encoding="utf-8")
    return path


def answer(folder: Path, *reached: str) -> None:
    """A stand-in for Java that prints what TLC printed once."""
    end = "@!@!@STARTMSG 2193:0 @!@!@\nNo error.\n@!@!@ENDMSG 2193 @!@!@"
    (folder / "output").write_text("\n".join([*reached, end]) + "\n", encoding="utf-8")
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat '{folder}/output'\n", encoding="utf-8")
    java.chmod(0o755)


def call(*files: Path) -> Result:
    return CliRunner().invoke(bentpipe, ["trace-check", *map(str, files)])


def test_trace_followed_to_its_end_passes(trace: Path) -> None:
    answer(trace.parent, '<<"reached", 1, 1, 0, "x">>', '<<"reached", 1, 3, 0, "accepted">>')
    result = call(trace)
    assert result.exit_code == 0 and "consistent, 2 events" in result.stdout


def test_what_was_followed_is_counted_and_what_never_was_named(trace: Path) -> None:
    answer(trace.parent, '<<"reached", 1, 1, 0, "x">>', '<<"reached", 1, 2, 0, "stop">>')
    result = CliRunner().invoke(bentpipe, ["trace-check", str(trace), "--coverage"])
    assert "  followed: send 1; never: ack, timeout, state" in result.stdout


def test_rejected_event_shown_with_its_guard(trace: Path) -> None:
    answer(
        trace.parent,
        '<<"reached", 1, 2, 0, "nothing calls for it">>',
        '<<"reached", 1, 1, 0, "y">>',
    )
    result = call(trace)
    assert result.exit_code == 1
    assert "violates the model at line 3: nothing calls for it" in result.stdout
    assert '> 3: {"event": "send", "seq": 0, "octets": 100}' in result.stdout


def test_silence_about_a_trace_is_a_problem(trace: Path) -> None:
    answer(trace.parent)
    assert call(trace).exit_code == 3


def test_file_that_is_no_trace_is_wrong_use(trace: Path) -> None:
    trace.write_text("nonsense", encoding="utf-8")
    result = call(trace)
    assert result.exit_code == 2 and "line 1 is not JSON" in result.output


def test_capture_followed_to_its_end_is_consistent(trace: Path, recorded: Recorder) -> None:
    frames = recorded(EndpointConfig(), 30)
    path = write(trace.parent / "x.pcapng", frames)
    events = len(frames) - 2
    answer(trace.parent, f'<<"reached", 1, {events + 1}, 0, "accepted">>')
    result = call(path)
    assert result.exit_code == 0
    assert f"consistent, {events} of {events} events checked (100 %)" in result.stdout


def test_rejected_packet_of_a_capture_shown_with_its_guard(trace: Path, recorded: Recorder) -> None:
    path = write(trace.parent / "x.pcapng", recorded(EndpointConfig(), 30))
    # TLC breaks long values into lines; the third event is the third segment.
    answer(trace.parent, '<< "reached",\n  1,\n  3,\n  0,\n  "it is reported held" >>')
    result = call(path)
    assert result.exit_code == 1
    assert "violates at packet 5 (octets 2896 to 4343): it is reported held" in result.stdout


def test_capture_that_lacks_something_is_open(trace: Path, recorded: Recorder) -> None:
    path = write(trace.parent / "x.pcapng", recorded(EndpointConfig(), 30, far=True))
    answer(trace.parent)
    result = call(path)
    assert result.exit_code == 3
    assert "capture insufficient: it was not taken at the sender's side" in result.stdout


def test_file_that_is_no_capture_is_wrong_use(trace: Path) -> None:
    path = trace.parent / "x.pcapng"
    path.write_text("nonsense", encoding="utf-8")
    result = call(path)
    assert result.exit_code == 2 and "neither a pcapng nor a pcap" in result.output


def test_unfit_file_does_not_keep_the_others_from_being_checked(trace: Path) -> None:
    answer(trace.parent, '<<"reached", 1, 2, 0, "nothing calls for it">>')
    unfit = trace.parent / "unfit.ndjson"
    unfit.write_text("nonsense", encoding="utf-8")
    result = CliRunner().invoke(bentpipe, ["trace-check", str(unfit), str(trace), "--json"])
    assert [row["verdict"] for row in json.loads(result.stdout)] == ["unfit", "violates"]
    assert result.exit_code == 1
