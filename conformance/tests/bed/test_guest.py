"""The bed itself, in User-Mode Linux: with a virtual clock if that kernel is built."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.place import Place, check_place
from bentpipe_conformance.bed.uml import Guest, run
from bentpipe_reference.common.link.profile import load_profiles

pytestmark = pytest.mark.bed
Play = Callable[..., dict[str, Any]]
GEO = load_profiles()["geo"]
PING_SECONDS = 0.6 + 2 * 84 * 8 / 1.3e6
PACKET_SECONDS = 1500 * 8 / 1.3e6


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    try:
        return kernels.find_virtual() or kernels.fetch_packaged()
    except BedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def tolerance(kernel: Kernel) -> float:
    """Seconds by which a time may be off; a wall clock on a busy machine promises little."""
    return 1e-4 if kernel.virtual else 0.25


@pytest.fixture(scope="module")
def happened(kernel: Kernel, play: Play) -> dict[str, Any]:
    return play(kernel, "guest_scenario.py")


def python(kernel: Kernel, code: str, timeout: float = 60.0) -> tuple[int, str, str]:
    command = [sys.executable, "-IS", "-c", code]
    result = run(kernel, command, virtual=kernel.virtual, memory_mib=128, timeout=timeout)
    return result.status, result.stdout, result.stderr


def test_command_exits_its_status_and_output_come_back(kernel: Kernel) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(5)"
    assert python(kernel, code) == (5, "out\n", "err\n")


def test_command_is_killed_its_signal_comes_back(kernel: Kernel) -> None:
    status, _, _ = python(kernel, "import os; os.kill(os.getpid(), 11)")
    assert status == -signal.SIGSEGV


def test_command_is_missing_the_error_says_so(kernel: Kernel) -> None:
    result = run(kernel, ["/nowhere/program"], virtual=kernel.virtual, memory_mib=128)
    assert result.status == 127
    assert "cannot run /nowhere/program" in result.stderr


def test_guest_sleeps_virtual_time_costs_nothing(kernel: Kernel) -> None:
    if not kernel.virtual:
        pytest.skip("no kernel with a virtual clock; build one with `bentpipe bed build`")
    code = "import time; a = time.monotonic(); time.sleep(5000); print(time.monotonic() - a)"
    status, told, _ = python(kernel, code)
    assert status == 0
    assert float(told) == pytest.approx(5000, abs=0.1)


def test_guest_halts_without_a_status_the_bed_failed(kernel: Kernel) -> None:
    halt = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"
    with pytest.raises(BedError, match="ended before its command"):
        python(kernel, halt)


def test_guest_takes_too_long_it_is_killed(kernel: Kernel) -> None:
    with pytest.raises(BedError, match="did not finish within 2 s"):
        python(kernel, "while True: pass", timeout=2)


def test_packaged_kernel_asked_for_virtual_time_names_the_build() -> None:
    with pytest.raises(BedError, match="bentpipe bed build"):
        Guest(Kernel(Path("/usr/bin/linux.uml"), False, "6.1"), ["true"], virtual=True)


def test_output_is_followed_while_the_guest_runs(kernel: Kernel) -> None:
    lines: list[str] = []
    command = [sys.executable, "-IS", "-c", "print('one', flush=True); print('two')"]
    with Guest(kernel, command, virtual=kernel.virtual, memory_mib=128) as guest:
        guest.wait(lines.append)
    assert lines == ["one", "two"]


@pytest.fixture
def owner(kernel: Kernel) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that owns a running guest, and the guest's supervisor."""
    code = (
        "import sys; from pathlib import Path\n"
        "from bentpipe_conformance.bed import kernel, uml\n"
        f"k = kernel.Kernel(Path({str(kernel.path)!r}), {kernel.virtual}, '')\n"
        "command = [sys.executable, '-IS', '-c',"
        " 'import signal; print(\"up\", flush=True); signal.pause()']\n"
        "guest = uml.Guest(k, command, virtual=k.virtual, memory_mib=128)\n"
        "guest.wait(lambda line: print(line, flush=True))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    supervisor = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
    yield process, supervisor
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_owner_is_killed_nothing_of_the_guest_is_left(
    owner: tuple[subprocess.Popen[str], int], number: signal.Signals
) -> None:
    process, supervisor = owner
    main = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text())
    words = Path(f"/proc/{main}/cmdline").read_text().split("\0")
    files = [word.partition("=")[2] for word in words if word.startswith(("init=", "uml_dir="))]
    handles = [os.pidfd_open(pid) for pid in (supervisor, main)]
    process.send_signal(number)
    for handle in handles:
        wait_for_end(handle)
    assert [file for file in files if Path(file).exists()] == []


def wait_for_end(handle: int) -> None:
    ready, _, _ = select.select([handle], [], [], 20)
    os.close(handle)
    assert ready


def test_ping_takes_the_links_time(happened: dict[str, Any], tolerance: float) -> None:
    assert happened["pings"]["took"] == pytest.approx(PING_SECONDS, abs=tolerance)


def test_ping_is_captured_at_both_points_both_ways(
    happened: dict[str, Any], tolerance: float
) -> None:
    captured = happened["pings"]["captured"]
    half = PING_SECONDS / 2
    assert [packet[1:] for packet in captured] == [
        ["peer", False],
        ["iut", False],
        ["iut", True],
        ["peer", True],
    ]
    times = [packet[0] for packet in captured]
    assert times == pytest.approx([0, half, half, 2 * half], abs=tolerance)


def test_linux_opens_echoes_and_generates(happened: dict[str, Any]) -> None:
    found = happened["services"]
    assert found["synack"] == {"mss": 1460, "sack": True, "flags": 18}
    assert found["echoed"] == "hello"
    assert found["offsets"] == [0, 1460, 2920]
    assert bytes.fromhex(found["stream"]) == bytes((i ^ i >> 8) & 0xFF for i in range(300))
    assert found["alive"] is None


def test_offloads_are_off_packets_are_as_on_a_wire(happened: dict[str, Any]) -> None:
    found = happened["services"]
    assert found["largest"] == 1500
    assert found["bad checksums"] == 0


def test_no_loss_both_points_see_the_same_packets_in_order(happened: dict[str, Any]) -> None:
    at_iut, at_peer = happened["services"]["both points"]
    assert at_iut == at_peer > 10
    assert happened["services"]["in order"]


def test_sysctl_switches_sack_off(happened: dict[str, Any]) -> None:
    assert happened["sysctl"] is False


def test_namespace_chooses_a_congestion_control_it_gets_it(happened: dict[str, Any]) -> None:
    assert happened["congestion_controls"] == ["vegas", "hybla", "westwood", "bbr"]


def test_burst_exceeds_the_queue_the_rest_is_dropped(
    happened: dict[str, Any], tolerance: float
) -> None:
    found = happened["queue"]
    assert found["sent"] == 80
    if tolerance < PACKET_SECONDS:
        assert len(found["arrived"]) == GEO.return_.queue_packets + 1
        span = found["arrived"][-1] - found["arrived"][0]
        assert span == pytest.approx(GEO.return_.queue_packets * PACKET_SECONDS, abs=tolerance)
    else:
        # On a wall clock some packets leave the queue while the burst still comes.
        assert GEO.return_.queue_packets < len(found["arrived"]) < 80


def test_answer_to_a_former_case_is_not_of_this_one(happened: dict[str, Any]) -> None:
    assert happened["former_case"] == {"late": False, "captured": 0, "address": "10.78.0.3"}


def test_two_lanes_have_links_of_their_own(happened: dict[str, Any], tolerance: float) -> None:
    fast = 0.001 + 2 * 84 * 8 / 1e8
    assert happened["side_by_side"] == pytest.approx([fast, PING_SECONDS], abs=tolerance)


def test_implementation_on_a_tun_answers_then_dies(happened: dict[str, Any]) -> None:
    python = Path(sys.executable).name
    assert happened["tun"] == {
        "mirrored": True,
        "before": None,
        "after": f"{python} ended with exit status 3 (it said: too long for me).",
        "points": ["iut", "peer"],
    }


def test_implementation_on_a_tap_has_the_same_link(
    happened: dict[str, Any], tolerance: float
) -> None:
    found = happened["tap"]
    # Neither the Ethernet header nor ARP may show, in the time or in the captures.
    assert found["took"] == pytest.approx(PING_SECONDS, abs=tolerance)
    assert found["octets"] == [84, 84, 84, 84]


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        ("overflow", "The capture on sat_"),
        ("unready", "did not print 'ready' within 3 s"),
        ("dies_early", "exit status 1 (it said: no licence)"),
        ("missing_program", "does not start: /nowhere/stack: No such file"),
        ("unknown_sysctl", "net.ipv4.tcp_congestion_control = nonesuch"),
    ],
)
def test_lane_cannot_be_had_one_sentence_says_why(
    happened: dict[str, Any], scenario: str, sentence: str
) -> None:
    assert happened[scenario].startswith("BedError: ")
    assert sentence in happened[scenario]


def test_closed_lanes_leave_no_descriptor(happened: dict[str, Any]) -> None:
    assert happened["descriptors"] is True


def test_check_measures_the_profile(kernel: Kernel, tolerance: float) -> None:
    place = Place("uml-virtual" if kernel.virtual else "uml", kernel)
    report = check_place(place, load_profiles()["geo-asym"])
    assert (report.place, report.lost) == (place.name, 0)
    assert report.rtt_mean == pytest.approx(report.rtt_expected, abs=tolerance)
    assert 0 < report.timing_error < tolerance
    assert report.forward_bit_s == pytest.approx(1.3e6, rel=0.05)
    assert report.return_bit_s == pytest.approx(50e3, rel=0.05)
