"""Running scenarios inside a guest: each is a function, and what it returns is printed as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bentpipe_conformance.bed.errors import BedError


def play(scenarios: Sequence[Callable[[], Any]]) -> int:
    """Run those named on the command line, or all; print their results by name."""
    wanted = sys.argv[1:]
    results = {}
    for scenario in scenarios:
        if wanted and scenario.__name__ not in wanted:
            continue
        try:
            results[scenario.__name__] = scenario()
        except BedError as error:
            results[scenario.__name__] = f"BedError: {error}"
    print(json.dumps(results))
    return 0
