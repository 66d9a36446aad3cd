"""Replay files: a script, where it was played and what it showed, as JSON.

``docs/reference/replay-files.rst`` describes the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_fuzz.campaign.script import Script, ScriptError, decode, encode

FORMAT = "bentpipe-replay/1"
MOST_OCTETS = 4 << 20


class ReplayError(Exception):
    """A file cannot be played; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The contents of a replay file.

    Attributes:
        script: what is played.
        iut: identifier or path of the implementation's description.
        link: identifier or path of the link profile.
        profile: of the suite.
        requirement: the requirement or oracle that was violated; empty for none.
        sentence: how.
        signature: requirement, state and packet.
        story: what happened, line by line, for people.
        packets: the odd packets that the tester sent, as expressions of Scapy.
        seed: of the campaign.
    """

    script: Script
    iut: str
    link: str
    profile: str
    requirement: str = ""
    sentence: str = ""
    signature: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    packets: tuple[str, ...] = ()
    seed: int = 0

    def dumps(self) -> str:
        """As text for a file."""
        document = {
            "format": FORMAT, "iut": self.iut, "profile": self.profile, "link": self.link,
            "campaign_seed": self.seed, "requirement": self.requirement,
            "sentence": self.sentence, "signature": list(self.signature),
            "story": list(self.story), "packets": list(self.packets),
            "script": encode(self.script),
        }  # fmt: skip
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def load(path: Path) -> Replay:
    """Read a replay file.

    Raises:
        ReplayError: it is missing, damaged or of another version.
    """
    try:
        if path.stat().st_size > MOST_OCTETS:
            raise ReplayError(f"{path} is larger than a replay file can be.")
        return loads(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error.strerror or error}.") from None


def loads(text: str, name: str = "the text") -> Replay:
    """Read the text of a replay file, called ``name`` in messages.

    Raises:
        ReplayError: it is damaged or of another version.
    """
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ReplayError(f"{name} is not a replay file: it is not JSON, or cut off.") from None
    told = document.get("format") if isinstance(document, Mapping) else None
    if told != FORMAT:
        if isinstance(told, str) and told.startswith("bentpipe-replay/"):
            remedy = f"this release plays {FORMAT}"
            raise ReplayError(f"{name} is of the format {told!r}; {remedy}.")
        raise ReplayError(f"{name} is not a replay file: its format is not {FORMAT}.")
    try:
        return Replay(
            decode(document["script"]),
            iut=_text(document, "iut"),
            link=_text(document, "link"),
            profile=_text(document, "profile"),
            requirement=_text(document, "requirement"), sentence=_text(document, "sentence"),
            signature=tuple(map(str, document["signature"])),
            story=tuple(map(str, document["story"])), packets=tuple(map(str, document["packets"])),
            seed=int(document["campaign_seed"]),
        )  # fmt: skip
    except (ScriptError, KeyError, TypeError, ValueError) as error:
        raise ReplayError(f"{name} is damaged: {error}.") from None


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value
