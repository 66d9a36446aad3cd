from __future__ import annotations

import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bentpipe_conformance.analysis.capture import Analysis, analyze_capture
from bentpipe_conformance.evidence.frames import Frame
from bentpipe_conformance.evidence.pcapng import write_pcapng
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR

CAPTURES = Path(__file__).parent / "captures"

Judge = Callable[..., Analysis]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Analyzes a stored capture by its name, or frames; ``ics`` names an implementation."""

    def judged(
        what: str | Sequence[Frame], iut: str | None = None, *, ics: str = "", link: int = 101,
        illustrated: bool = False,
    ) -> Analysis:  # fmt: skip
        path = tmp_path / "capture.pcapng"
        if isinstance(what, str):
            path.write_bytes(lzma.decompress((CAPTURES / f"{what}.pcapng.xz").read_bytes()))
        else:
            file = io.BytesIO()
            write_pcapng(file, what, name="eth0", link_type=link)
            path.write_bytes(file.getvalue())
        stated = dict(load_iut(ics).ics) if ics else None
        return analyze_capture(
            path, SNR, "rfc", iut=iut, stated=stated, illustrated=illustrated, partial=True
        )

    return judged
