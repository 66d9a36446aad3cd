"""Items of the conformance statement that show in TCP's handshake."""

from __future__ import annotations

from collections.abc import Mapping

_SACK = ("sack_permitted", "SACK-permitted")

HANDSHAKE_ITEMS: Mapping[str, tuple[str, str]] = {
    "sack": _SACK,
    "sack_sender": _SACK,
    "sack_receiver": _SACK,
    "timestamps": ("tsval", "Timestamps"),
    "window_scale": ("window_scale", "Window Scale"),
}
"""For each item an attribute of the segment and the name of the option."""
