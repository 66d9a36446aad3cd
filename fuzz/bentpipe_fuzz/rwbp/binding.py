"""RWBP as a campaign sees it: the verbs and packets of TCP, and an option in the handshake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import conversation, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp import binding as tcp
from bentpipe_fuzz.tcp import conversations as of_tcp
from bentpipe_fuzz.tcp import episodes

offer: Mapping[str, st.SearchStrategy[Any]] = {
    "rwbp": st.sampled_from([True, True, True, False]),
    "interval": st.sampled_from([0, 1, 2, 8, 8, 64, 255]),
    "unit": st.sampled_from([None, None, 1, 536, 4096]),
    "mss": st.sampled_from([536, 1000, 1460, 1460]),
    "window": st.sampled_from([2920, 8000, 20_000, 40_000]),
}
opening = step("open", service=of_tcp.service, **offer)
calling = step("call", role=st.sampled_from(["send", "receive"]), **offer)

MODES: Mapping[str, st.SearchStrategy[Sequence[Step]]] = {
    "honest": conversation(opening | calling, of_tcp.honest, episodes=episodes.HONEST),
    "lazy": conversation(opening, of_tcp.honest, of_tcp.lazy, episodes=episodes.LAZY),
    "on-path": conversation(
        opening | calling,
        of_tcp.honest,
        of_tcp.almost_valid,
        of_tcp.garbage,
        episodes=episodes.ODD,
    ),
    "off-path": conversation(opening, of_tcp.honest, of_tcp.off_path),
}

BINDING = replace(
    tcp.BINDING, modes=MODES, imports=tcp.BINDING.imports.replace(".tcp.peer ", ".rwbp.peer ")
)
