"""Items of the conformance statement that show in TCP's handshake."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HandshakeItem:
    """A conformance-statement item that shows in the handshake."""

    attribute: str
    name: str


HANDSHAKE_ITEMS = {
    "sack": HandshakeItem("sack_permitted", "SACK-permitted"),
    "sack_sender": HandshakeItem("sack_permitted", "SACK-permitted"),
    "sack_receiver": HandshakeItem("sack_permitted", "SACK-permitted"),
    "timestamps": HandshakeItem("tsval", "Timestamps"),
    "window_scale": HandshakeItem("window_scale", "Window Scale"),
}
