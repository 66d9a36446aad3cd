"""IPv4 addresses as 32-bit numbers."""

from __future__ import annotations


def address_number(text: str) -> int:
    """The 32-bit number of a dotted IPv4 address.

    Raises:
        ValueError: the text is not four numbers from 0 to 255 joined by dots.
    """
    parts = text.split(".")
    if len(parts) == 4 and all(map(str.isdecimal, parts)):
        numbers = [int(part) for part in parts]
        if max(numbers) < 256:
            return int.from_bytes(numbers, "big")
    raise ValueError(f"{text!r} is not an IPv4 address; write it as four numbers, as in 10.77.0.2.")


def address_text(number: int) -> str:
    """The dotted form of a 32-bit IPv4 address."""
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
