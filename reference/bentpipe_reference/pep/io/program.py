"""A box from its start to its end: what ``bentpipe pep run`` does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import BoxConfig, Ending, Opening, Strangers
from bentpipe_reference.pep.io.metrics import LOG, Collector, numbers
from bentpipe_reference.pep.io.network import between
from bentpipe_reference.pep.io.router import Router
from bentpipe_reference.pep.over_rwbp import RwbpBox
from bentpipe_reference.pep.over_stp import StpBox
from bentpipe_reference.pep.parts import TRUE_PARTS, Parts
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.tcp.config import EndpointConfig

Speech = Literal["tcp", "rwbp", "stp"]

_HEADERS = 40
"""Octets of the headers of IPv4 and TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user chooses.

    Attributes:
        lan, satellite: names of the interfaces.
        speak: what connections over the satellite speak; ``rwbp`` where somebody answers so,
            ``stp`` with another box that does.
        opening, end, strangers, connections: see :class:`BoxConfig`.
        buffer: octets that are held of one stream at most.
        drain: seconds that connections have to end once the program is to end.
        metrics: address and port at which Prometheus may ask, None for nowhere.
    """

    lan: str
    satellite: str
    speak: Speech = "tcp"
    opening: Opening = "late"
    end: Ending = "confirmed"
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
        outer=outer, inner=inner, opening=settings.opening, end=settings.end,
        strangers=settings.strangers, paired=False, most_relays=settings.connections,
    )  # fmt: skip
    return config, parts


def run(settings: Settings, ready: Callable[[], None]) -> int:
    """Be a box until SIGTERM or SIGINT, of which the second does not let connections end.

    ``ready`` is called once packets are led here.

    Returns:
        The number of the signal.

    Raises:
        NetworkError: the kernel cannot be set up.
        OSError: metrics cannot be offered where they are wanted.
        ValueError: the settings exclude each other.
    """
    with (
        between(settings.lan, settings.satellite) as (descriptors, mtu),
        asyncio.Runner() as runner,
    ):
        config, parts = configured(settings, mtu)
        box = parts.box(config, parts, int.from_bytes(os.urandom(8), "big"))
        return runner.run(_serve(box, descriptors, settings, ready))


async def _serve(
    box: Box, descriptors: tuple[int, int], settings: Settings, ready: Callable[[], None]
) -> int:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    router = Router(box, descriptors, loop)

    def stop(number: int) -> None:
        LOG.info("draining", extra={"fields": numbers(router)})
        router.drain(settings.drain, lambda: ended.set_result(number))

    with contextlib.ExitStack() as held:
        held.callback(router.close)
        if settings.metrics is not None:
            held.enter_context(_offered(router, settings.metrics))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
            held.callback(loop.remove_signal_handler, number)
        LOG.info("ready", extra={"fields": {"lan": settings.lan, "satellite": settings.satellite}})
        ready()
        found: int = await ended
        LOG.info("stopped", extra={"fields": numbers(router)})
        return found


@contextlib.contextmanager
def _offered(router: Router, where: tuple[str, int]) -> Iterator[None]:
    """Answer Prometheus meanwhile."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(Collector(router))
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
