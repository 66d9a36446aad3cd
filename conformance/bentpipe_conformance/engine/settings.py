"""The settings of a run: what is the same for each of its cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bentpipe_conformance.engine.encapsulation import IN_UDP, Encapsulation
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.statement import Ics


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What is the same for every case of a run.

    Attributes:
        profile: a profile of the suite.
        ics: the declared conformance statement.
        rtt: round-trip time of the link without queueing, in seconds.
        seed: printed seed of the run.
        services: ports of the upper tester.
        drain: seconds to wait after a case until the link has delivered what it carries; 0 where
            every case has a link of its own.
        encapsulation: how packets of a protocol that the kernel does not know travel in IPv4.
    """

    profile: str
    ics: Ics
    rtt: float
    seed: int = 0
    services: Mapping[str, int] = field(default_factory=lambda: STANDARD_SERVICES)
    drain: float = 0.0
    encapsulation: Encapsulation = IN_UDP
