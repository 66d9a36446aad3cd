"""The box as a program: what it moves, sets up and tells."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import socket
from collections.abc import Callable, Iterator

import pytest
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.pep.io import metrics, network
from bentpipe_reference.pep.io.program import Settings, configured
from bentpipe_reference.pep.io.router import Router, with_one_hop_more
from bentpipe_reference.pep.over_rwbp import RwbpBox
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet, parse_packet

CALLER, CALLED = 0x0A010001, 0x0A020001
SYN = Segment(CALLER, CALLED, 4000, 80, 77, 0, int(Flags.SYN), 1000, mss=1460)
SETTINGS = Settings(lan="eth0", satellite="eth1", buffer=1 << 17, connections=2)


class Bench:
    """A router between two sockets, whose other ends are the tester's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        self.wires = [pair[0] for pair in pairs]
        self._held = pairs
        for wire in self.wires:
            wire.setblocking(False)
        config, parts = configured(SETTINGS, 1500)
        self.loop = loop
        self.router = Router(
            parts.box(config, parts, 1), (pairs[0][1].fileno(), pairs[1][1].fileno()), loop
        )

    async def told(self, port: int) -> Segment:
        return parse_packet(await asyncio.wait_for(self.loop.sock_recv(self.wires[port], 2000), 5))

    def tell(self, port: int, segment: Segment) -> None:
        self.wires[port].send(emit_packet(segment))

    async def opened(self) -> tuple[Segment, Segment]:
        """A connection that the caller has opened; what the box has sent to open it."""
        self.tell(0, SYN)
        call = await self.told(1)
        flags = int(Flags.SYN | Flags.ACK)
        self.tell(
            1, Segment(CALLED, CALLER, 80, call.sport, 500, call.seq + 1, flags, 1000, mss=1460)
        )
        await self.told(1)
        answer = await self.told(0)
        ack = int(Flags.ACK)
        self.tell(0, Segment(CALLER, CALLED, 4000, 80, 78, answer.seq + 1, ack, 1000))
        return call, answer

    def close(self) -> None:
        self.router.close()
        for pair in self._held:
            for one in pair:
                one.close()


@pytest.fixture
def bench() -> Iterator[tuple[asyncio.AbstractEventLoop, Bench]]:
    loop = asyncio.new_event_loop()
    made = Bench(loop)
    yield loop, made
    made.close()
    loop.close()


On = tuple[asyncio.AbstractEventLoop, Bench]


def test_connection_that_opens_is_split(bench: On) -> None:
    loop, made = bench
    call, answer = loop.run_until_complete(made.opened())
    assert (call.source, call.sport) == (CALLER, 4000)
    assert call.seq != SYN.seq
    assert answer.seq != 500
    assert metrics.numbers(made.router)["opened_total"] == 1


def test_box_that_drains_leaves_new_connections_whole_and_ends_with_the_last(bench: On) -> None:
    loop, made = bench

    async def drained() -> tuple[Segment, bool, Segment]:
        await made.opened()
        ended = loop.create_future()
        made.router.drain(60.0, lambda: ended.set_result(None))
        made.tell(0, Segment(CALLER, CALLED, 4001, 80, 1234, 0, int(Flags.SYN), 1000))
        passed = await made.told(1)
        early = ended.done()
        made.router.drain(60.0, lambda: None)  # the second signal
        await ended
        return passed, early, await made.told(0)

    passed, early, last = loop.run_until_complete(drained())
    assert passed.seq == 1234
    assert not early
    assert last.flags & Flags.RST
    counted = metrics.numbers(made.router)
    assert (counted["connections"], counted["failed_total"], counted["passed_packets_total"]) == (
        0, 1, 1,
    )  # fmt: skip


def test_box_that_is_idle_and_drains_ends_at_once(bench: On) -> None:
    _, made = bench
    ended: list[bool] = []
    made.router.drain(60.0, lambda: ended.append(True))
    assert ended == [True]


def test_packet_of_ipv6_goes_nowhere(bench: On) -> None:
    loop, made = bench
    made.wires[0].send(b"\x60" + bytes(60))
    made.tell(0, SYN)
    assert loop.run_until_complete(made.told(1)).dport == 80
    assert metrics.numbers(made.router)["passed_packets_total"] == 0


def test_packet_that_the_kernel_does_not_take_is_counted(bench: On) -> None:
    loop, made = bench
    made.wires[1].close()
    made.tell(0, SYN)
    loop.run_until_complete(asyncio.sleep(0))
    assert metrics.numbers(made.router)["lost_packets_total"] == 1


@pytest.mark.parametrize("hops", [1, 63, 64, 254])
def test_packet_has_one_hop_more_and_a_checksum_that_fits(hops: int) -> None:
    packet = bytearray(emit_packet(SYN))
    packet[8] = hops
    packet[10:12] = bytes(2)
    packet[10:12] = internet_checksum(bytes(packet[:20])).to_bytes(2, "big")
    found = with_one_hop_more(bytes(packet))
    assert found[8] == hops + 1
    assert internet_checksum(found[:20]) == 0
    packet[10] ^= 1
    assert internet_checksum(with_one_hop_more(bytes(packet))[:20]) != 0


def test_settings_of_a_user_make_a_box() -> None:
    config, parts = configured(SETTINGS, 1400)
    assert (config.buffer, config.outer.mss, config.paired) == (1 << 17, 1360, False)
    over, parts = configured(Settings(lan="a", satellite="b", speak="rwbp"), 1500)
    assert parts.box is RwbpBox
    assert over.buffer == 2 << 20


def kernel(*, forwarding: str = "on", strict: str = "off") -> Callable[[list[str]], str]:
    """Stands for ``ip``: an MTU of 1400 at eth1, one thing that refuses, and a list of commands."""

    def run(words: list[str]) -> str:
        commands.append(" ".join(words))
        if "netconf" in words:
            names = ("all", "eth0", "eth1", *network.DEVICES)
            return "".join(
                f"inet {name} forwarding {forwarding} rp_filter {strict} \n" for name in names
            )
        if words[0] == "-json":
            return json.dumps([{"mtu": 1400 if "eth1" in words else 1500}])
        return ""

    commands: list[str] = []
    run.commands = commands  # type: ignore[attr-defined]
    return run


def refusing(why: str) -> Callable[[list[str]], str]:
    """Stands for an ``ip`` that adds rules and cannot remove any."""

    def run(words: list[str]) -> str:
        commands.append(words[2])
        if "del" in words:
            raise network.NetworkError(why)
        return ""

    commands: list[str] = []
    run.commands = commands  # type: ignore[attr-defined]
    return run


@pytest.fixture
def _devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_open", lambda _: os.open(os.devnull, os.O_RDWR))


@pytest.mark.usefixtures("_devices")
def test_whatever_is_set_up_is_taken_back() -> None:
    run = kernel()
    with network.between("eth0", "eth1", run) as (_, mtu):
        assert mtu == 1400
        before = len(run.commands)  # type: ignore[attr-defined]
    commands = run.commands  # type: ignore[attr-defined]
    rules = {
        f"priority {number} iif {name} lookup {number}"
        for name, number in (("eth0", 7300), ("eth1", 7301))
    }
    assert {f"-4 rule add {rule}" for rule in rules} <= set(commands[:before])
    assert {f"-4 rule del {rule}" for rule in rules} == set(commands[before:])


@pytest.mark.usefixtures("_devices")
@pytest.mark.parametrize(
    ("run", "remedy"),
    [
        (kernel(forwarding="off"), "sysctl -w net.ipv4.ip_forward=1"),
        (kernel(strict="strict"), "sysctl -w net.ipv4.conf.all.rp_filter=2"),
    ],
)
def test_kernel_that_would_drop_packets_gives_a_sentence_and_no_rule(
    run: Callable[[list[str]], str], remedy: str
) -> None:
    with (
        pytest.raises(network.NetworkError, match=remedy.replace(".", r"\.")),
        network.between("eth0", "eth1", run),
    ):
        pass
    assert not any("rule add" in each for each in run.commands)  # type: ignore[attr-defined]


def test_rule_that_somebody_else_has_removed_is_no_failure() -> None:
    run = refusing("RTNETLINK answers: No such file or directory")
    with network.ruled(["priority", "7300"], run):
        pass
    assert run.commands == ["del", "add", "del"]  # type: ignore[attr-defined]


def test_rule_that_cannot_be_removed_is_one() -> None:
    run = refusing("RTNETLINK answers: Operation not permitted")
    with (
        pytest.raises(network.NetworkError, match="not permitted"),
        network.ruled(["priority", "7300"], run),
    ):
        pass


def test_two_boxes_in_one_network_exclude_each_other() -> None:
    with (
        network.alone(),
        pytest.raises(network.NetworkError, match="end it first"),
        network.alone(),
    ):
        pass
    with network.alone():
        pass


def test_interface_that_is_not_there_is_named() -> None:
    def run(words: list[str]) -> str:
        raise network.NetworkError(f"'ip {' '.join(words)}' failed: Device does not exist.")

    with pytest.raises(network.NetworkError, match="There is no interface eth7 here"):
        network.size_of("eth7", run)


def test_command_that_fails_is_quoted() -> None:
    with pytest.raises(network.NetworkError, match="no-such-object"):
        network.run_ip(["no-such-object"])


def test_log_is_lines_of_json() -> None:
    stream = io.StringIO()
    metrics.log_to(stream, "info")
    metrics.LOG.info("ready", extra={"fields": {"lan": "eth0"}})
    told = json.loads(stream.getvalue())
    assert (told["event"], told["level"], told["lan"]) == ("ready", "info", "eth0")
    assert told["time"].endswith("Z")


def test_status_is_what_prometheus_reads(bench: On) -> None:
    from bentpipe_reference.pep.io.program import _offered

    loop, made = bench
    loop.run_until_complete(made.opened())
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    with _offered(made.router, ("127.0.0.1", port)):
        assert metrics.ask(f"127.0.0.1:{port}") == metrics.numbers(made.router)
    with pytest.raises(OSError, match="refused"):
        metrics.ask(f"127.0.0.1:{port}")
