"""TCP's codecs, written apart from each other, on any segment."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from bentpipe_fuzz.inputs import agreement
from bentpipe_fuzz.inputs.agreement import EVERY, Disagreement, agree, packets

MANY = 8_000


def test_codecs_agree_on_any_segment() -> None:
    taken = [
        agree(packet, layers=not number % EVERY)
        for number, packet in enumerate(islice(packets(7), MANY))
    ]
    assert MANY // 5 < sum(taken) < MANY // 2


def test_codec_that_reads_another_window_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = agreement.dissect

    def dishonest(packet: bytes) -> Any:
        found = honest(packet)
        return replace(found, window=found.window ^ 1)

    monkeypatch.setattr(agreement, "dissect", dishonest)
    with pytest.raises(Disagreement):
        list(map(agree, islice(packets(7), 100)))
