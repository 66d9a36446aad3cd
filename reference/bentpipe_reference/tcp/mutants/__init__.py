"""Mutants of the TCP reference, a module per group of requirements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.sender import Sender


def with_sender(sender_class: type[Sender]) -> Callable[[EndpointConfig], EndpointConfig]:
    """The ``configure`` of a mutant whose sender is ``sender_class``."""
    return lambda config: replace(config, sender_class=sender_class)
