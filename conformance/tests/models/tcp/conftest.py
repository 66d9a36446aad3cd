"""Transfers of the reference, captured at the sender's side of a virtual link."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path as File

import pytest
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.evidence.pcapng import LINKTYPE_RAW, write_pcapng
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.tool import Tool, cache_directory, find_tool, read_pin
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.path import Delivery, Path
from bentpipe_reference.tcp.wire.codec import emit_packet

Recorder = Callable[..., list[Frame]]
LIMIT_S = 90.0


def _recorded(
    setup: EndpointConfig | Setup,
    segments: int,
    drops: Iterable[int] = (),
    link: str = "geo",
    seed: int = 1,
    far: bool = False,
) -> list[Frame]:
    path = Path(load_profiles()[link], seed)
    path.forward.drops.update(drops)
    frames: list[Frame] = []
    simulation = path.simulation

    def note(delivery: Delivery, outgoing: bool) -> None:
        octets = emit_packet(delivery.args[0])  # type: ignore[attr-defined]
        time = round(simulation.now * 1e9)
        frames.append(Frame(len(frames) + 1, time, octets, LINKTYPE_RAW, outgoing=outgoing))

    def observed(send: Callable[[Delivery, int], None], outgoing: bool) -> Callable[..., None]:
        def sending(delivery: Delivery, size: int) -> None:
            if outgoing != far:
                note(delivery, outgoing)
                send(delivery, size)
                return

            def arriving() -> None:
                note(delivery, outgoing)
                delivery()

            send(arriving, size)

        return sending

    path.forward.send = observed(path.forward.send, True)  # type: ignore[method-assign]
    path.return_.send = observed(path.return_.send, False)  # type: ignore[method-assign]
    config = setup.config if isinstance(setup, Setup) else setup
    flow = path.flow(segments * config.mss, setup)
    flow.start()
    simulation.run_while(flow.is_pending, LIMIT_S)
    return frames


@pytest.fixture
def recorded() -> Recorder:
    """Transfers and returns what the sender's side of the link saw (the receiver's if ``far``)."""
    return _recorded


def found_tool() -> Tool:
    """The model checker, for tests that are skipped without it."""
    pin = read_pin(model_root() / "pom.xml")
    if shutil.which("java") is None or not (cache_directory() / pin.file_name).is_file():
        pytest.skip("needs Java and the model checker: bentpipe model all")
    return find_tool(model_root())


def write(path: File, frames: Iterable[Frame], name: str = "link") -> File:
    """Keep frames as a capture."""
    with path.open("wb") as file:
        write_pcapng(file, frames, name=name)
    return path


@pytest.fixture
def some_drops() -> Callable[[int, int], list[int]]:
    """Numbers of packets to lose, from a seed."""
    return lambda seed, segments: random.Random(seed).sample(range(6, segments), 5)
