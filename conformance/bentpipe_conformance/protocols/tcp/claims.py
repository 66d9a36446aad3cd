"""Options in a segment, and items of the conformance statement that show in the handshake."""

from __future__ import annotations

from collections.abc import Mapping

from bentpipe_conformance.protocols.tcp.codec import Tcp

_SACK = ("sack_permitted", "SACK-permitted")

HANDSHAKE_ITEMS: Mapping[str, tuple[str, str]] = {
    "sack": _SACK,
    "sack_sender": _SACK,
    "sack_receiver": _SACK,
    "timestamps": ("tsval", "Timestamps"),
    "window_scale": ("window_scale", "Window Scale"),
}
"""For each item an attribute of the segment and the name of the option."""


def carries(tcp: Tcp | None, attribute: str) -> bool:
    """Whether an option is there; its value may well be 0."""
    value = getattr(tcp, attribute, None)
    return value is not None and value is not False
