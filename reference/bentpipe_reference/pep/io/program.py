"""A box from its start to its end: what ``bentpipe pep run`` does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import BoxConfig, Ending, Opening, Strangers
from bentpipe_reference.pep.io.divert import diverted
from bentpipe_reference.pep.io.metrics import LOG, Collector, Running, numbers
from bentpipe_reference.pep.io.network import NetworkError, alone, between
from bentpipe_reference.pep.io.router import Router
from bentpipe_reference.pep.io.sockets import SocketBox
from bentpipe_reference.pep.over_rwbp import RwbpBox
from bentpipe_reference.pep.over_stp import StpBox
from bentpipe_reference.pep.parts import TRUE_PARTS, Parts
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.tcp.config import EndpointConfig

Speech = Literal["tcp", "rwbp", "stp"]

_FILES = 64
"""That are open beside those of connections."""

_HEADERS = 40
"""Octets of the headers of IPv4 and TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user chooses.

    Attributes:
        lan, satellite: names of the interfaces.
        speak: what connections over the satellite speak; ``rwbp`` where somebody answers so,
            ``stp`` with another box that does.
        sockets: whether connections end in the kernel's sockets, which is fast; they then open
            early, and ends are local.
        opening, end: see :class:`BoxConfig`; None for late and confirmed, or what sockets can do.
        strangers, connections: see :class:`BoxConfig`.
        buffer: octets that are held of one stream at most.
        drain: seconds that connections have to end once the program is to end.
        metrics: address and port at which Prometheus may ask, None for nowhere.
    """

    lan: str
    satellite: str
    speak: Speech = "tcp"
    sockets: bool = False
    opening: Opening | None = None
    end: Ending | None = None
    strangers: Strangers = "forward"
    connections: int = 1000
    buffer: int = 2 << 20
    drain: float = 30.0
    metrics: tuple[str, int] | None = None


def configured(settings: Settings, mtu: int) -> tuple[BoxConfig, Parts]:
    """What the box is made of between interfaces of which the smaller has this MTU.

    Raises:
        ValueError: the settings exclude each other; one sentence.
    """
    half = settings.buffer // 2
    outer = EndpointConfig(receive_buffer=half, send_buffer=half, mss=mtu - _HEADERS)
    inner, parts = outer, TRUE_PARTS
    if settings.speak == "rwbp":
        inner = RwbpConfig(receive_buffer=half, send_buffer=half, mss=mtu - _HEADERS)
        parts = replace(TRUE_PARTS, box=RwbpBox)
    elif settings.speak == "stp":
        parts = replace(TRUE_PARTS, box=StpBox)
    config = BoxConfig(
        outer=outer, inner=inner, opening=settings.opening or "late",
        end=settings.end or "confirmed",
        strangers=settings.strangers, paired=False, most_relays=settings.connections,
    )  # fmt: skip
    return config, parts


def run(settings: Settings, ready: Callable[[], None]) -> int:
    """Be a box until SIGTERM or SIGINT, of which the second does not let connections end.

    ``ready`` is called once packets are led here.

    Returns:
        The number of the signal.

    Raises:
        NetworkError: the kernel cannot be set up, or another such program runs.
        OSError: metrics cannot be offered where they are wanted.
        ValueError: the settings exclude each other.
    """
    if settings.sockets:
        check_sockets(settings)
        with alone(), asyncio.Runner() as runner:
            return runner.run(_serve_sockets(settings, ready))
    with (
        alone(),
        between(settings.lan, settings.satellite) as (descriptors, mtu),
        asyncio.Runner() as runner,
    ):
        config, parts = configured(settings, mtu)
        box = parts.box(config, parts, int.from_bytes(os.urandom(8), "big"))
        return runner.run(_serve_packets(box, descriptors, settings, ready))


def check_sockets(settings: Settings) -> None:
    """Whether sockets can do what is wanted.

    Raises:
        ValueError: they cannot; one sentence.
    """
    for name, can in (
        ("speak", "tcp"), ("opening", "early"), ("end", "local"), ("strangers", "forward"),
    ):  # fmt: skip
        if getattr(settings, name) not in (None, can):
            raise ValueError(
                f"With sockets {name} is {can!r} and cannot be {getattr(settings, name)!r}; leave "
                "sockets out, or choose that."
            )


async def _serve_packets(
    box: Box, descriptors: tuple[int, int], settings: Settings, ready: Callable[[], None]
) -> int:
    router = Router(box, descriptors, asyncio.get_running_loop())
    return await _serve(router, lambda: None, settings, ready)


async def _serve_sockets(settings: Settings, ready: Callable[[], None]) -> int:
    _raise_limit(2 * settings.connections + _FILES)
    try:
        box = SocketBox(asyncio.get_running_loop(), settings.buffer, settings.connections)
    except PermissionError:
        raise NetworkError(
            "Sockets with the addresses of others are not permitted; run this as administrator of "
            "the network."
        ) from None
    with (
        diverted(settings.lan, settings.satellite, box.listening) as led,
        led.watched() as descriptor,
    ):
        box.on_full = lambda full: led.lead("nowhere" if full else "here")
        box.on_refusal = led.spare
        return await _serve(box, lambda: led.lead("past"), settings, ready, until=descriptor)


def _raise_limit(files: int) -> None:
    """Permit so many open files, as far as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        with contextlib.suppress(ValueError, OSError):
            most = max(hard, files) if hard != resource.RLIM_INFINITY else files
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


async def _serve(
    running: Running, spare_new: Callable[[], None], settings: Settings, ready: Callable[[], None],
    *, until: int | None = None,
) -> int:  # fmt: skip
    """Run until a signal, or until a process ends that has to go on, given its descriptor.

    Raises:
        NetworkError: it has ended.
        OSError: metrics cannot be offered where they are wanted.
    """
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def stop(number: int) -> None:
        def drained() -> None:
            if not ended.done():
                ended.set_result(number)

        spare_new()
        running.drain(settings.drain, drained)
        LOG.info("draining", extra={"fields": numbers(running)})

    def give_up(descriptor: int) -> None:
        loop.remove_reader(descriptor)
        if not ended.done():
            ended.set_exception(
                NetworkError("nft has ended, and the rules that lead connections here with it; "
                             "start this again.")
            )  # fmt: skip

    with contextlib.ExitStack() as held:
        held.callback(running.close)
        if until is not None:
            loop.add_reader(until, give_up, until)
            held.callback(loop.remove_reader, until)
        if settings.metrics is not None:
            held.enter_context(_offered(running, settings.metrics))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
            held.callback(loop.remove_signal_handler, number)
        LOG.info("ready", extra={"fields": {"lan": settings.lan, "satellite": settings.satellite}})
        ready()
        found: int = await ended
        LOG.info("stopped", extra={"fields": numbers(running)})
        return found


@contextlib.contextmanager
def _offered(running: Running, where: tuple[str, int]) -> Iterator[None]:
    """Answer Prometheus meanwhile."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Collector(running))
    try:
        server, thread = start_http_server(where[1], where[0], registry)
    except OSError as error:
        raise OSError(
            f"Nobody can ask at {where[0]}:{where[1]} ({error.strerror}); choose another place "
            "for metrics."
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
