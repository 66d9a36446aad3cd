"""Steps of an STP script as lines of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.faults import ALL_FLAGS, RESERVED
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW

from bentpipe_fuzz.campaign.writing import arguments, expression, turned
from bentpipe_fuzz.stp.odd import KINDS, LITTLE
from bentpipe_fuzz.stp.player import ENDS_S, MOST_SDS

NAMES: Mapping[str, str] = {
    "next": "connection.vt_s", "acked": "connection.vt_a", "edge": "connection.vt_ms",
    "delivered": "connection.reception.vr_r", "highest": "connection.highest",
    "credit": "connection.reception.vr_mr", "wrap": "((1 << 24) - connection.peer_iss)",
}  # fmt: skip

_POSSESSED: Mapping[str, frozenset[str]] = {
    "n_ps": frozenset({"SDP", "POLL", "STAT"}),
    "csn": frozenset({"BEGIN", "BGAK", "END", "SDP", "POLL"}),
    "peer_csn": frozenset({"BGAK", "END", "ENDAK", "BGREJ"}),
}
"""The packets that have a field (section 5)."""


_place = partial(expression, NAMES)


def _kind(name: str) -> str:
    return f"codec.{name}"


def _open(service: str = "chargen", octets: int = 0, **own: Any) -> list[str]:
    data = f", data=pattern(0, {octets})" if octets else ""
    return [f"connection = peer.connect({service!r}{data}{arguments(own)})"]


def _restart(service: str = "chargen", octets: int = 0, ahead: int = 0) -> list[str]:
    words = [f"{service!r}", *([f"data=pattern(0, {octets})"] if octets else [])]
    words.append("source_port=connection.source_port")
    if ahead:
        words.append(f"csn=(connection.csn + {ahead}) % (1 << 32)")
    return [f"connection = peer.connect({', '.join(words)})"]


def _ring(role: str = "send", octets: int = 20_000, anew: bool = True) -> list[str]:
    told = "" if anew else ", anew=False"
    return [f"connection = peer.summon({role!r}, octets={octets}{told})"]


def _answer(credit: int | None = None, **fields: Any) -> list[str]:
    words = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    granted = f"connection.reception.vr_mr = connection.reception.vr_r + {credit}"
    return [*([] if credit is None else [granted]), f"connection.bgak({words})"]


def _refuse(
    reason: int = 6, cookie: bool = True, size: int = 16, max_sd: int | None = None
) -> list[str]:
    baked = f"peer.jar.make({min(max(size, 8), 32)})" if cookie else "None"
    words = f"reason={reason & 255}, cookie={baked}, max_sd={max_sd}"
    lines = [f"connection.send(codec.BGREJ, {words})"]
    if cookie and reason == CALL_ANEW:
        lines.append("connection = peer.await_anew(connection)")
    return lines


def _knock(
    service: str = "discard", back: int = 0, flip: int = -1, voiding: bool = False,
    fin: bool = False, octets: int = 0, over: int = 0, here: bool = False,
) -> list[str]:  # fmt: skip
    # Which cookies have been used before is for the author of the case to say.
    lines = [f"cookie = peer.cookie({service!r})" + (f"  # used {back} calls ago" if back else "")]
    if flip >= 0:
        lines += [
            "changed = bytearray(cookie)",
            f"changed[{flip // 8} % len(changed)] ^= {1 << flip % 8}",
        ]
    if back < 0:
        fresh = f"cookie = peer.fresh_cookie({service!r})"
        lines[:1] = ["before = [*peer.jar.kept]", fresh, "peer.jar.kept.extend(before)"]
    cookie = "bytes(changed)" if flip >= 0 else "cookie"
    told = (", voiding=True" if voiding else "") + (", fin=True" if fin else "")
    told += ", source_port=connection.source_port" if here else ""
    if octets or over:
        told += f", data=pattern(0, min({octets}, peer.jar.max_sd) + {over})"
    return [*lines, f"connection = peer.begin({service!r}, cookie={cookie}{told})"]


def _collect(cookies: int = 1, service: str = "discard") -> list[str]:
    return [
        f"for _ in range({cookies}):", f"    asking = peer.begin({service!r})",
        "    peer.pump_until(lambda: bool(asking.closed), peer.patience)",
    ]  # fmt: skip


def _habit(reserved: bool = True, tag: bool = False, kinds: Sequence[str] = ()) -> list[str]:
    habit = "reserved(packet)" if reserved else "packet"
    habit = f"foreign_tag({habit})" if tag else habit
    types = ", ".join(map(_kind, kinds or KINDS))
    return [f"peer.alter = lambda packet: {habit} if packet.type in ({types},) else packet"]


def _hang_up() -> list[str]:
    return [
        "connection.polite = False",
        'connection.sd(b"the end", fin=True, poll=True)',
        "with suppress(NotReached):",
        f"    within = 4 * connection.rtt + {ENDS_S}",
        "    connection.serve(lambda: bool(connection.closed), within=within)",
    ]


def _write(
    sds: int = 1, octets: int = 100, poll: bool = False, gap: float = 0.0,
    losing: Sequence[int] = (),
) -> list[str]:  # fmt: skip
    if losing:
        listed = f"connection.vt_s + number for number in {[*losing]}"
        lines = [f"connection.sds({sds}, {octets}, skip=[{listed}])"]
        return [*lines, "connection.poll()"] if poll else lines
    lines = []
    before = sds - 1 if poll else sds
    if before > 0:
        lines += [f"for _ in range({before}):", f"    connection.sd({octets})"]
        if gap:
            lines.append(f"    peer.wait({gap})")
    return [*lines, *([f"connection.sd({octets}, poll=True)"] if poll and sds else [])]


def _receive(
    seconds: float = 1.0, credit: int | None = 64, report: bool = True,
    answer: Sequence[float] = (0.0,),
) -> list[str]:  # fmt: skip
    times = f"lambda _poll, _before: {list(answer)!r}"
    words = f"credit={credit}, report_gaps={report}, answer={times}, within={seconds}"
    return ["with suppress(NotReached):", f"    connection.serve(lambda: False, {words})"]


def _packet(
    kind: str = "POLL", seq: Sequence[Any] | None = None, octets: int | None = None,
    n_mr: Sequence[Any] | None = None, n_r: Sequence[Any] | None = None, n_ps: int | None = None,
    elements: Sequence[Sequence[Any]] | None = None, tag: int = 0, csn: int = 0, peer_csn: int = 0,
    fields: Mapping[str, Any] | None = None, reserved: bool = False, odd: bool = False,
) -> list[str]:  # fmt: skip
    usual = f"connection.compose({_kind(kind)})"
    raw = dict(fields or {})
    if "options" in raw:
        raw["options"], odd = bytes.fromhex(raw["options"]), True
    if reserved:
        number = KINDS[kind]
        raw["reserved"] = RESERVED.get(number, ())
        raw["flags"] = raw.get("flags", 0) | ALL_FLAGS & ~codec.FLAGS.get(number, 0)
    words = [f"{name}={value!r}" for name, value in raw.items()]
    if kind == "USTAT" and elements is None:
        elements = [("delivered", 0), ("delivered", 1)]
    has_data = kind in ("SD", "SDP")
    if seq is not None and not has_data:
        side = "ours" if kind == "POLL" else "theirs"
        words.append(f"seq=connection.{side}({_place(seq)})")
    if octets is not None and not has_data:
        words.append(f"data=pattern(0, {min(octets, 1400)})")
    if n_mr is not None:
        words.append(f"n_mr=connection.theirs({_place(n_mr)})")
    if n_r is not None and kind == "BGAK":
        words.append(f"n_r=connection.theirs({_place(n_r)})")
    if n_ps is not None and kind in _POSSESSED["n_ps"]:
        words.append(f"n_ps=({usual}.n_ps + {n_ps}) % (1 << 24)")
    if elements is not None:
        listed = ", ".join(_place(place) for place in elements[:12])
        words.append(f"elements=connection.their_list([{listed}])")
    if tag:
        words.append(f"tag={usual}.tag ^ {tag & 0xFFFF}")
    for name, distance in (("csn", csn), ("peer_csn", peer_csn)):
        if distance and kind in _POSSESSED[name]:
            words.append(f"{name}=({usual}.{name} + {distance}) % (1 << 32)")
    if odd:
        words.append("odd=True")
    if has_data:
        data = str(LITTLE) if octets is None else f"pattern(0, {min(octets, 1400)})"
        first = [data, f"number={_place(seq or ('next', 0))}", f"poll={kind == 'SDP'}"]
        return [f"connection.sd({', '.join([*first, *words])})"]
    if kind == "POLL" and n_ps is None:
        return [f"connection.poll({', '.join(words)})"]
    return [f"connection.send({', '.join([_kind(kind), *words])})"]


def _tell(
    kind: str = "STAT", ack: int = 0, hole: int = 0, held: int = 0, wrong: str = "", **more: Any
) -> list[str]:  # fmt: skip
    # Which POLL is answered, and what else is said, is for the author of the case to choose.
    said = f"{wrong or 'valid'}, {more}"
    lines = ["connection.collect(0.0)", f"first = connection.reception.told + {ack}"]
    if kind == "USTAT":
        run = f"first + {held}, first + {held + max(hole, 1)}, seq=connection.theirs(first)"
        return [*lines, f"connection.ustat({run})  # {said}"]
    ends = f"(first, first + {hole}, first + {hole + held})" if hole and held else "()"
    return [*lines, f"connection.stat(n_r=first, elements={ends})  # {said}"]


def _begin(service: str | int = "chargen", octets: int = 0, cookie: int = -1) -> list[str]:
    told = "" if cookie < 0 else f", cookie=pattern(0, {min(max(cookie, 8), 32)})"
    return [f"peer.begin({service!r}, data=pattern(0, {octets}){told})"]


def _put(draft: str, octets: str, right: bool) -> list[str]:
    crafted = f"craft_octets({draft}, {octets})"
    return [f"peer.send({crafted if right else f'wrong_checksum({crafted})'})"]


def _octets(octets: str = "", right: bool = True) -> list[str]:
    return _put("connection.compose(codec.POLL)", f"bytes.fromhex({octets!r})", right)


def _malformed(
    kind: str = "POLL", cut: int = -1, more: str = "", right: bool = True, here: bool = True,
    anew: bool = False, version: int | None = None,
) -> list[str]:  # fmt: skip
    kept = "COMMON_HEADER:" if cut < 0 else f"COMMON_HEADER : COMMON_HEADER + {cut}"
    octets = f"codec.octets_of(packet)[{kept}]" + (f" + bytes.fromhex({more!r})" if more else "")
    lines = _armed(kind, here, anew)
    if version is not None and kind == "BEGIN":
        lines.append(f"packet = replace(packet, version={version & 15})")
    return [*lines, *_put("packet", octets, right)]


def _forbidden(
    kind: str = "POLL",
    defect: str = "checksum",
    which: int = 0,
    here: bool = True,
    anew: bool = False,
) -> list[str]:
    return [
        *_armed(kind, here, anew), f"broken = list(FORBIDDEN[{defect!r}](packet))",
        "if broken:", f"    peer.send(broken[{which} % len(broken)])",
    ]  # fmt: skip


def _armed(kind: str, here: bool, anew: bool) -> list[str]:
    lines = ["whose = connection" if here else "whose = peer.prepare('echo')"]
    if kind == "USTAT":
        listed = "elements=whose.their_list((first, first + 1))"
        return [
            *lines, "first = whose.reception.vr_r",
            f"packet = whose.compose({_kind(kind)}, {listed})",
        ]  # fmt: skip
    lines.append("csn = peer.next_csn()")
    own = ", csn=csn, tag=tag_of(csn), cookie=None" if anew else ""
    return [
        *lines,
        f"packet = next(item for item in armed(whose{own}) if item.type == {_kind(kind)})",
    ]


LINES: Mapping[str, Callable[..., list[str]]] = {
    "open": _open,
    "restart": _restart,
    "call": lambda **given: [*_ring(**given), *_answer()],
    "ring": _ring,
    "answer": _answer,
    "refuse": _refuse,
    "knock": _knock,
    "collect": _collect,
    "habit": _habit,
    "move": lambda by=1: [f"peer.udp_port = max(1, (peer.udp_port + {by}) % (1 << 16))"],
    "hang_up": _hang_up,
    "write": _write,
    "fill": lambda octets=8, leaving=0: [
        f"count = connection.vt_ms - connection.vt_s - {leaving}",
        f"connection.sds(min(max(count, 0), {MOST_SDS}), {octets})",
    ],
    "tell": _tell,
    "approach": lambda sds=2, credit=16: [
        f"near = (1 << 24) - connection.peer_iss - {sds}",
        "with suppress(NotReached):",
        f"    connection.receive(near, credit={credit}, within=20.0)",
    ],
    "widen": lambda sds=100: [
        "with suppress(NotReached):",
        f"    widen(connection, {min(sds, MOST_SDS)})",
    ],
    "close": lambda poll=True: [f'connection.sd(b"", fin=True, poll={poll})'],
    "release": lambda: ["connection.release(within=60.0)"],
    "quit": lambda heard=True: [f"connection.polite = {heard}", "peer.have_aborted()"],
    "abort": lambda: ["connection.abort()"],
    "turn": turned,
    "wait": lambda seconds=1.0: [f"peer.wait({seconds})"],
    "receive": _receive,
    "settle": lambda: ["connection.deliver(within=2 * connection.rtt + 1.0)"],
    "ask": lambda: ["connection.poll()"],
    "packet": _packet,
    "begin": _begin,
    "octets": _octets,
    "malformed": _malformed,
    "forbidden": _forbidden,
}

IMPORTS = """\
from contextlib import suppress
from dataclasses import replace

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.faults import FORBIDDEN, armed, foreign_tag, reserved
from bentpipe_conformance.protocols.stp.cases.steps import widen
from bentpipe_conformance.protocols.stp.crafting import (
    COMMON_HEADER,
    craft_octets,
    wrong_checksum,
)
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.peer import Peer
"""
