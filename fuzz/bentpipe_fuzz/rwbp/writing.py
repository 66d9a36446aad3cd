"""Steps of an RWBP script as lines of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bentpipe_fuzz.campaign.writing import arguments
from bentpipe_fuzz.tcp import writing as tcp


class _Octets(str):
    """Hexadecimal digits, as an expression for these octets."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"bytes.fromhex({str(self)!r})"


def _offering(lines: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """The lines of a verb that makes an offer, the option of which is octets."""

    def written(*names: Any, **given: Any) -> list[str]:
        if "option" in given:
            given["option"] = _Octets(given["option"])
        return lines(*names, **given)

    return written


def _grant(packets: int = 1 << 20, repeated: bool = True) -> list[str]:
    return [f"peer.gateway.grant({packets})", f"peer.gateway.silent = {not repeated}"]


def _epoch(packets: int = 0, newer: int = 1, arrived: int = 0) -> list[str]:
    return [f"peer.gateway.restart({packets}, epochs={newer}, arrived={arrived})"]


def _frame(
    epoch: int = 0, arrived: int = 0, limit: int = 0, odd: Mapping[str, Any] | None = None
) -> list[str]:  # fmt: skip
    distances = {"epoch": epoch, "arrived": arrived, "limit": limit}
    fields = ", ".join(f"{name}=gateway.{name} + {by}" for name, by in distances.items())
    return ["gateway = peer.gateway", f"gateway.tell({fields}{arguments(odd or {})})"]


LINES: Mapping[str, Callable[..., list[str]]] = {
    **tcp.LINES,
    **{verb: _offering(tcp.LINES[verb]) for verb in ("open", "call", "syn")},
    "link": lambda: ["peer.behind_the_link()"],
    "grant": _grant,
    "share": lambda seconds=1.0, credit=0: [f"peer.share({seconds}, {credit})"],
    "epoch": _epoch,
    "frame": _frame,
    "mute": lambda: ["peer.gateway.stop()"],
    "miss": lambda packets=1: [f"peer.gateway.arrived -= {packets}"],
}

IMPORTS = tcp.IMPORTS.replace(".tcp.peer ", ".rwbp.peer ")
