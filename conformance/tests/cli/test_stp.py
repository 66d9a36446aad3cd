"""``bentpipe stp`` as users run it: processes on loopback, each ended by the test."""

import contextlib
import ctypes
import hashlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bentpipe_reference.common.processes import die_with_parent

STP = (sys.executable, "-m", "bentpipe_conformance.cli.main", "stp")
PATIENCE = 60.0
PR_CAPBSET_DROP, CAP_NET_RAW = 24, 13
LISTENING = "bentpipe: listening at "

Start = Callable[..., "Command"]


class Command:
    """A running command; reads its first lines itself, and the rest at its end."""

    def __init__(self, words: Sequence[str], stdin: int, stdout: int) -> None:
        self.process = subprocess.Popen(
            [*STP, *words],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            bufsize=0,
            preexec_fn=die_with_parent,
        )

    def listening(self) -> str:
        """Wait until it listens; where."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        assert line.startswith(LISTENING), line + self.process.stderr.read().decode()
        return line.removeprefix(LISTENING).strip()

    def line(self) -> bytes:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def read(self, octets: int) -> bytes:
        """So many octets of its output."""
        assert self.process.stdout is not None
        found = b""
        while len(found) < octets:
            piece = self.process.stdout.read(octets - len(found))
            assert piece, found
            found += piece
        return found

    def say(self, given: bytes) -> None:
        """Write to its standard input."""
        assert self.process.stdin is not None
        left = memoryview(given)
        while left:
            left = left[self.process.stdin.write(left) :]

    def end(self, given: bytes | None = None) -> tuple[int, bytes, str]:
        """Wait for its end: status, output, errors."""
        out, err = self.process.communicate(given, timeout=PATIENCE)
        return self.process.returncode, out, err.decode()


@pytest.fixture
def start() -> Iterator[Start]:
    commands: list[Command] = []

    def run(*words: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE) -> Command:
        commands.append(Command(words, stdin, stdout))
        return commands[-1]

    yield run
    for command in commands:
        with command.process as process:
            process.kill()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(3_000_001))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_file_arrives_whole_and_both_sides_say_so(
    start: Start, data: Path, tmp_path: Path, host: str
) -> None:
    copy = tmp_path / "copy"
    receiver = start("recv", "--listen", f"{host}:0", "--json", str(copy))
    sender = start("send", "--json", str(data), receiver.listening())
    status, out, err = sender.end()
    assert (status, err) == (0, "")
    told = json.loads(out)
    status, out, err = receiver.end()
    assert (status, err) == (0, "")
    received = json.loads(out)
    assert sha256(copy) == sha256(data) == told["sha256"] == received["sha256"]
    assert told["octets"] == received["octets"] == 3_000_001
    assert told["success"] and received["success"]
    assert told["sds"] >= 3_000_001 // 1448
    assert told["polls"] > 0 and told["seconds"] > 0
    assert not (tmp_path / "copy.part").exists()


def test_symbolic_link_in_the_place_of_the_part_is_not_followed(
    start: Start, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "copy.part").symlink_to(victim)
    status, _, err = start("recv", "--listen", "127.0.0.1:0", str(tmp_path / "copy")).end()
    assert status == 2 and "copy.part cannot be opened" in err
    assert victim.read_bytes() == b"precious"


def test_progress_is_shown_on_a_terminal_and_nowhere_else(start: Start, data: Path) -> None:
    receiver = start("recv", "--listen", "127.0.0.1:0", "--out", str(data.parent / "inbox"))
    place = receiver.listening()
    assert start("send", str(data), place).end() == (0, b"", "")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*STP, "send", str(data), place],
        stdin=subprocess.DEVNULL, stderr=theirs, preexec_fn=die_with_parent,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as sender:  # fmt: skip
        os.close(theirs)
        shown = b""
        # Reading a terminal that nobody has open any longer is an error.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                shown += piece
    os.close(ours)
    assert sender.returncode == 0
    assert b"data" in shown
    assert b"3.0/3.0 MB" in shown
    assert b"3000001 octets in" in shown


def test_pipe_to_pipe_arrives_whole(start: Start, data: Path) -> None:
    receiver = start("recv", "--listen", "127.0.0.1:0")
    sender = start("send", "-", receiver.listening(), stdin=subprocess.PIPE)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sender.end, data.read_bytes())
        # The receiver's output is read only later: its pipe fills and holds the sender back.
        with pytest.raises(TimeoutError):
            sending.result(0.5)
        status, out, _ = receiver.end()
        assert (status, out) == (0, data.read_bytes())
        assert sending.result()[0] == 0


def test_echo_returns_standard_input_and_chargen_its_pattern(start: Start) -> None:
    server = start("serve", "--listen", "127.0.0.1:0", stdin=subprocess.PIPE)
    place = server.listening()
    assert server.line() == b"ready\n"
    for given in (b"", b"hello\n", bytes(range(256)) * 4000):
        client = start("echo", place, stdin=subprocess.PIPE)
        assert client.end(given) == (0, given, "")
    chargen = start("echo", f"{place}/19", stdin=subprocess.PIPE)
    assert chargen.read(70_000) == bytes((i ^ i >> 8) & 255 for i in range(70_000))


def test_discard_takes_a_file_from_a_server_without_standard_input(
    start: Start, data: Path
) -> None:
    server = start("serve", "--listen", "127.0.0.1:0")
    sender = start("send", str(data), server.listening())
    assert sender.end()[0] == 0
    server.process.send_signal(signal.SIGINT)
    assert server.end()[0] == 130


def test_server_is_told_to_open_it_calls_and_serves(start: Start, data: Path) -> None:
    first = start("serve", "--listen", "127.0.0.1:0", stdin=subprocess.PIPE)
    first.listening()
    receiver = start("recv", "--listen", "127.0.0.1:0")
    _, port = receiver.listening().rsplit(":", 1)
    first.say(
        b"nonsense\nopen 127.0.0.1 x 9\nopen 127.0.0.1 1 9 dance\nopen ::1 1 9\n"
        + f"open 127.0.0.1 {port} 9 chargen\n".encode()
    )
    # chargen sends without end.
    assert receiver.read(5) == bytes([0, 1, 2, 3, 4])
    first.say(b"close\n")
    status, out, _ = receiver.end()
    assert status == 0
    assert out[:3] == bytes([5, 6, 7])
    first.process.send_signal(signal.SIGTERM)
    status, _, err = first.end(None)
    assert status == 128 + signal.SIGTERM
    complaints = err.splitlines()
    assert [line.split(";")[0] for line in complaints[:3]] == [
        "bentpipe: 'nonsense' is not a command",
        "bentpipe: 'x' is not a port",
        "bentpipe: 'dance' is not a service",
    ]
    assert "address family" in complaints[3]
    assert len(complaints) == 4


def test_server_is_told_how_much_to_send_it_closes_behind_that(start: Start) -> None:
    server = start("serve", "--listen", "127.0.0.1:0", stdin=subprocess.PIPE)
    server.listening()
    receiver = start("recv", "--listen", "127.0.0.1:0")
    _, port = receiver.listening().rsplit(":", 1)
    server.say(
        f"open 127.0.0.1 {port} 9 chargen x\nopen 127.0.0.1 {port} 9 chargen 3000\n".encode()
    )
    status, out, _ = receiver.end()
    assert status == 0
    assert out == bytes((i ^ i >> 8) & 255 for i in range(3000))
    server.process.send_signal(signal.SIGTERM)
    _, _, err = server.end(None)
    assert "'x' is not a number of octets" in err


def test_files_go_into_a_directory_one_after_the_other(
    start: Start, data: Path, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    receiver = start("recv", "--listen", "127.0.0.1:0", "--out", str(inbox), "--json")
    place = receiver.listening()
    for number in (1, 2):
        assert start("send", str(data), place).end()[0] == 0
        assert json.loads(receiver.line())["success"]
        assert sha256(inbox / f"received-000{number}") == sha256(data)
    receiver.process.send_signal(signal.SIGINT)
    assert receiver.end()[0] == 130
    assert sorted(path.name for path in inbox.iterdir()) == ["received-0001", "received-0002"]


def test_nobody_at_the_udp_port_is_told_at_once(start: Start, data: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    status, out, err = start("send", str(data), f"127.0.0.1:{port}").end()
    assert (status, out) == (1, b"")
    assert err == (
        f"bentpipe: 127.0.0.1:{port} refused: nobody is at this UDP port; check the port, or start "
        "`bentpipe stp` there.\n"
    )


def test_nobody_at_the_service_port_is_told_at_once(start: Start, data: Path) -> None:
    server = start("serve", "--listen", "127.0.0.1:0")
    place = server.listening()
    status, out, err = start("send", "--json", str(data), f"{place}/4242").end()
    assert status == 1
    assert json.loads(out)["reason"] == "nobody listens on the peer's port"
    assert "4242 refused: nobody listens on the peer's port; start a service there" in err


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["send", "/nowhere/file", "127.0.0.1:4000"], 2, "cannot be opened (No such file"),
        (["send", "/", "127.0.0.1:4000"], 2, "is a directory"),
        (["send", "/dev/null", "127.0.0.1"], 2, "no UDP port"),
        (["send", "/dev/null", "127.0.0.1:4000/99999"], 2, "STP port '99999'"),
        (["send", "/dev/null", "no.such.host.invalid:4000"], 3, "is not found"),
        (["recv", "--listen", "192.0.2.1:0", "copy"], 3, "give an address of this host"),
        (["recv", "--listen", "127.0.0.1:0", "--json"], 2, "needs standard output for itself"),
        (["recv", "--listen", "127.0.0.1:0", "--out", "a", "b"], 2, "exclude each other"),
        (["send", "/dev/null", "127.0.0.1:4000", "--ip", "253"], 2, "without a UDP port"),
    ],
)
def test_wrong_usage_is_one_sentence(
    start: Start, words: list[str], status: int, sentence: str
) -> None:
    code, out, err = start(*words).end()
    assert (code, out) == (status, b"")
    assert sentence in err
    assert err.startswith("bentpipe: ") and err.count("\n") == 1


def test_address_in_use_is_one_sentence(start: Start, tmp_path: Path) -> None:
    place = start("serve", "--listen", "127.0.0.1:0").listening()
    code, _, err = start("recv", "--listen", place, str(tmp_path / "copy")).end()
    assert code == 3
    assert "already in use" in err and "choose another port" in err


def test_sender_is_interrupted_the_receiver_learns_of_it(start: Start, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(b"an older copy")
    receiver = start("recv", "--listen", "127.0.0.1:0", str(copy))
    sender = start("send", "-", receiver.listening(), stdin=subprocess.PIPE)
    sender.say(b"the beginning")
    part = tmp_path / "copy.part"
    # Readiness is that the first octets have come through.
    while not part.exists() or not part.stat().st_size:
        assert receiver.process.poll() is None
    # What ends after the signal is no end of the stream.
    sender.process.send_signal(signal.SIGINT)
    assert sender.end()[0] == 130
    status, _, err = receiver.end()
    assert status == 1
    assert "the peer aborted the connection; 13 octets had been received" in err
    assert copy.read_bytes() == b"an older copy"
    assert part.read_bytes() == b"the beginning"


def test_receiver_is_full_the_sender_learns_of_it(start: Start, data: Path) -> None:
    with open("/dev/full", "wb") as full:
        receiver = start("recv", "--listen", "127.0.0.1:0", stdout=full.fileno())
    status, _, err = start("send", str(data), receiver.listening()).end()
    assert status == 1
    assert "the peer aborted the connection" in err
    status, _, err = receiver.end()
    assert status == 1
    assert "No space left on device; fix that and repeat" in err


def test_pipe_with_a_name_is_written_to_and_stays_a_pipe(start: Start, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        receiver = start("recv", "--listen", "127.0.0.1:0", str(pipe))
        sender = start("send", "-", receiver.listening(), stdin=subprocess.PIPE)
        assert sender.end(b"through the pipe")[0] == 0
        assert receiver.end()[0] == 0
        assert os.read(reading, 100) == b"through the pipe"
        assert pipe.is_fifo()
        assert list(tmp_path.iterdir()) == [pipe]
    finally:
        os.close(reading)


def test_link_to_a_file_stays_a_link(start: Start, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    receiver = start("recv", "--listen", "127.0.0.1:0", str(link))
    sender = start("send", "-", receiver.listening(), stdin=subprocess.PIPE)
    assert sender.end(b"new")[0] == 0
    assert receiver.end()[0] == 0
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_large_packets_pass_where_the_path_carries_them(
    start: Start, data: Path, tmp_path: Path
) -> None:
    # Loopback carries 65536 octets.
    copy = str(tmp_path / "copy")
    place = start("recv", "--listen", "127.0.0.1:0", "--max-sd", "60000", copy).listening()
    status, out, err = start("send", "--json", "--max-sd", "60000", str(data), place).end()
    assert (status, err) == (0, "")
    assert json.loads(out)["sds"] < 3_000_001 / 50_000


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets take root")
def test_file_arrives_directly_over_ip(start: Start, data: Path, tmp_path: Path) -> None:
    for protocol, host in (("253", "127.0.0.7"), ("254", "127.0.0.9")):
        copy = tmp_path / f"copy-{protocol}"
        receiver = start("recv", "--ip", protocol, "--listen", host, str(copy))
        assert receiver.listening() == host
        sender = start("send", "--ip", protocol, "--json", str(data), host)
        status, _, err = sender.end()
        assert (status, err) == (0, "")
        assert receiver.end()[0] == 0
        assert sha256(copy) == sha256(data)


def test_raw_socket_without_the_capability_is_one_sentence() -> None:
    done = subprocess.run(
        [*STP, "serve", "--ip", "253", "--listen", "127.0.0.1"],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, preexec_fn=drop_net_raw,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout == b""
    assert b"CAP_NET_RAW; run as root or leave out --ip" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_standard_input_is_closed_is_one_sentence() -> None:
    done = subprocess.run(
        [*STP, "send", "-", "127.0.0.1:4000"],
        capture_output=True, check=False, preexec_fn=lambda: os.close(0),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == b"bentpipe: standard input is closed; open it or give a file.\n"


def drop_net_raw() -> None:
    """Take CAP_NET_RAW from what is executed next; anybody but root has none."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0)


def test_help_of_every_command_has_examples(start: Start) -> None:
    for words in ([], ["serve"], ["send"], ["recv"], ["echo"]):
        status, out, _ = start(*words, "--help").end()
        assert status == 0
        assert out.count(b"\n    bentpipe stp ") + out.count(b" | bentpipe stp ") >= 2
