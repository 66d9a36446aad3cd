"""Lanes: what is ready when a case begins."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.iut.contents import Contents
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.protocols.stp import crafting as stp_crafting
from bentpipe_conformance.protocols.tcp import crafting as tcp_crafting
from bentpipe_conformance.run import opening


@pytest.mark.parametrize(
    ("iut", "crafting"),
    [("linux", tcp_crafting), ("stp-go", stp_crafting), ("rwbp-go", tcp_crafting)],
)
def test_lane_in_a_bed_is_laid_out_with_scapy_loaded(
    iut: str, crafting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a guest's time loading it takes 0.7 ms, most of a round trip over a LAN.

    Where that fell into a measured round trip, which depended on the cases that the same worker
    had run before, no lower bound of Linux's timeout was known (SNR-RTO-015).
    """
    crafting.layers.cache_clear()

    def laid_out(*_: object, **__: object) -> None:
        assert crafting.layers.cache_info().currsize
        raise BedError("far enough")

    monkeypatch.setattr(opening, "KernelLane", laid_out)
    with pytest.raises(BedError, match="far enough"):
        opening.open_lane(load_iut(iut), opening.load_link("lan"), 1, contents=Contents())
