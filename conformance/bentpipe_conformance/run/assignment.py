"""What a worker is to do, as it travels into the place where the worker runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bentpipe_conformance.evidence.serialization import decode, dumps, encode, loads
from bentpipe_conformance.iut.contents import Contents


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is to do; it travels as JSON.

    Attributes:
        iut: identifier or path of the IUT description.
        link: identifier or path of the link profile.
        profile: a profile of the suite.
        suite: name of the suite.
        cases: identifiers of the cases to run; those that the bundle has are passed over.
        bundle: directory of the bundle.
        claims: directory of the claims; after a probe the cases begin when it is there.
        seed: the run's seed.
        contents: the files of the implementation, as the plan has them.
        lanes: how many lanes to run side by side in this place.
        timing_error: seconds, from the bed's check.
        probe: file that the first of the workers writes the probe's result to before any case;
            empty for no probe.
    """

    iut: str
    link: str
    profile: str
    suite: str
    cases: tuple[str, ...]
    bundle: str
    claims: str
    seed: int
    contents: Contents = field(default_factory=Contents)
    lanes: int = 1
    timing_error: float = 0.0
    probe: str = ""

    def dump(self, path: Path) -> None:
        """Write it for :meth:`load`."""
        path.write_text(dumps(encode(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Assignment:
        """Read what :meth:`dump` wrote."""
        return decode(cls, loads(path.read_text(encoding="utf-8")))
