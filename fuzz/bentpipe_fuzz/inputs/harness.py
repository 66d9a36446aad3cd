"""What the codecs of a protocol are asked: ``HARNESS`` in ``bentpipe_fuzz.NAME.codecs``."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

PROTOCOLS = ("tcp", "stp", "rwbp", "pep")
"""The protocols with codecs of their own."""

Reading = object | None
"""What a codec makes of a packet, in a form that all codecs of the protocol share; None where it
refuses the packet, or says that a receiver has to."""


class Disagreement(Exception):
    """Two codecs read a packet in different ways."""


@dataclass(frozen=True, slots=True)
class Harness:
    """The codecs of a protocol, which were written apart from each other.

    Attributes:
        tester: reads an IPv4 packet as the judge does.
        reference: reads it as the reference does.
        layers: reads it by Scapy, which takes a hundred times as long.
        undetermined: why nothing says how this packet has to be read, so that two codecs may
            differ; empty where something does. It is asked where they differ.
        layered: of what the reference reads, the part that Scapy's layers read, too.
    """

    tester: Callable[[bytes], Reading]
    reference: Callable[[bytes], Reading]
    layers: Callable[[bytes], Reading]
    undetermined: Callable[[bytes], str] = lambda _packet: ""
    layered: Callable[[Reading], Reading] = lambda reading: reading

    @property
    def readers(self) -> Mapping[str, Callable[[bytes], Reading]]:
        """The codecs by name."""
        return {"tester": self.tester, "reference": self.reference, "Scapy": self.layers}

    def agree(self, packet: bytes, *, layers: bool = False) -> bool:
        """Compare what two codecs make of a packet, with ``layers`` all; whether they take it.

        Raises:
            Disagreement: they differ though something says how the packet has to be read.
        """
        meant = self.reference(packet)
        self._compare("tester", self.tester(packet), meant, packet)
        if layers:
            self._compare("Scapy", self.layers(packet), self.layered(meant), packet)
        return meant is not None

    def _compare(self, who: str, seen: Reading, meant: Reading, packet: bytes) -> None:
        if seen != meant and not self.undetermined(packet):
            raise Disagreement(f"{who}: {seen}, reference: {meant}, of {packet.hex()}")


@cache
def harness_of(protocol: str) -> Harness:
    """The harness of one of :data:`PROTOCOLS`."""
    logging.getLogger("scapy").setLevel(logging.ERROR)
    found: Harness = importlib.import_module(f"bentpipe_fuzz.{protocol}.codecs").HARNESS
    return found


@cache
def scapy_ip() -> Any:
    """Scapy's layer of IPv4, which takes a second to load."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from scapy.layers.inet import IP
    return IP


def scapy_payload(packet: bytes, *, whole: bool = True) -> tuple[Any, Any] | None:
    """Scapy's IPv4 header and what follows it; None where the header is one to refuse.

    Scapy reads headers that are damaged, and checks no checksum; with ``whole`` a header's is
    computed here.
    """
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    from scapy.utils import checksum

    ip = scapy_ip()(packet)
    fits = ip.ihl >= 5 and ip.ihl * 4 <= ip.len <= len(packet)
    if not fits or ip.frag or ip.flags.MF or (whole and checksum(packet[: ip.ihl * 4])):
        return None
    return ip, ip.payload
