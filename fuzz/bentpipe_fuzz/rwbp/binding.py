"""RWBP as a campaign sees it: the verbs and packets of TCP, and an option in the handshake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import conversation, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.rwbp.linked import LINKED
from bentpipe_fuzz.rwbp.player import VERBS, Player
from bentpipe_fuzz.rwbp.situations import AGREEING, ENDING, MOVING
from bentpipe_fuzz.rwbp.walks import HELD_UP, LONG, WALKS
from bentpipe_fuzz.rwbp.writing import IMPORTS, LINES
from bentpipe_fuzz.tcp import binding as tcp
from bentpipe_fuzz.tcp import conversations as of_tcp
from bentpipe_fuzz.tcp import episodes, sending, situations

offer: Mapping[str, st.SearchStrategy[Any]] = {
    "rwbp": st.sampled_from([True, True, True, False]),
    "interval": st.sampled_from([0, 1, 2, 8, 8, 64, 255]),
    "unit": st.sampled_from([None, None, 1, 536, 4096]),
    "mss": st.sampled_from([536, 1000, 1460, 1460]),
    "window": st.sampled_from([2920, 8000, 20_000, 40_000]),
}
opening = step("open", service=of_tcp.service, **offer)
calling = step("call", role=st.sampled_from(["send", "receive"]), **offer)

OWN = (*AGREEING, *MOVING, *ENDING, *LINKED, *WALKS, *HELD_UP, *LONG)
"""What is RWBP's is drawn twice as often as the situations of TCP of the same kind, and walks three
times: what nobody has thought of is met by them."""

MODES: Mapping[str, st.SearchStrategy[Sequence[Step]]] = {
    "honest": conversation(
        opening | calling, of_tcp.honest, episodes=episodes.HONEST,
        situations=(*OWN, *OWN, *WALKS, *HELD_UP, *situations.ENDING, *sending.SENDING),
    ),
    "lazy": conversation(
        opening, of_tcp.honest, of_tcp.lazy, episodes=episodes.LAZY,
        situations=(*MOVING, *MOVING, *LINKED, *LINKED, *WALKS, *WALKS, *HELD_UP, *HELD_UP,
                    *sending.SENDING),
    ),
    "on-path": conversation(
        opening | calling, of_tcp.honest, of_tcp.almost_valid, of_tcp.garbage,
        episodes=episodes.ODD,
        situations=(*OWN, *OWN, *situations.OPENING, *situations.ENDING, *situations.CARRYING),
    ),
    "off-path": conversation(
        opening, of_tcp.honest, of_tcp.off_path,
        situations=(*OWN, *OWN, *WALKS, *HELD_UP, *situations.CARRYING),
    ),
}  # fmt: skip

BINDING = replace(
    tcp.BINDING, player=Player, verbs=VERBS, modes=MODES, lines=LINES, imports=IMPORTS
)
