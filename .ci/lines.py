"""Count the code lines of each protocol, room by room: ``make lines``.

A code line is a line of Python with something on it but a comment or a docstring (that of an
attribute is one, too). Left out are tests, ``story.py`` (which only tests use), what compares
codecs with each other (a test, too), the faults of blind rounds, and what is generated.
Implementations under test, such as the responders in Go, are no part of a protocol; nor are
experiments.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOCOLS = {"tcp": "TCP", "stp": "STP/1", "rwbp": "RWBP/1"}
REFERENCE = "reference/bentpipe_reference/{}"
SUITE = "conformance/bentpipe_conformance/protocols/{}"
ROOMS = {
    "reference": REFERENCE,
    "its mutants, those of blind rounds left out": f"{REFERENCE}/mutants",
    "codec, peer, replay and report of the suite": SUITE,
    "checkers": f"{SUITE}/checkers",
    "cases": f"{SUITE}/cases",
    "trace tables of the models": "conformance/bentpipe_conformance/models/{}",
    "campaigns": "fuzz/bentpipe_fuzz/{}",
}
"""Each counts what stands in no other."""

BARE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """The code lines of a module."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        said_there = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if said_there and isinstance(node.value.value, str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BARE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - said)


def counted(protocol: str) -> dict[str, int]:
    """The code lines of a protocol's rooms."""
    rooms = {name: ROOT / path.format(protocol) for name, path in ROOMS.items()}
    lines = dict.fromkeys(rooms, 0)
    for path in sorted({p for room in rooms.values() for p in room.rglob("*.py")}):
        compares = path.name == "codecs.py" and "bentpipe_fuzz" in path.parts
        if path.name != "story.py" and "blind" not in path.parts and not compares:
            home = max(
                (r for r in rooms if path.is_relative_to(rooms[r])),
                key=lambda r: len(str(rooms[r])),
            )
            lines[home] += code_lines(path.read_text(encoding="utf-8"))
    return lines


def main() -> None:
    """Print the table."""
    columns = {protocol: counted(protocol) for protocol in PROTOCOLS}
    print(f"{'':46}", *(f"{name:>8}" for name in PROTOCOLS.values()))
    for room in ROOMS:
        print(f"{room:46}", *(f"{columns[protocol][room]:8,}" for protocol in PROTOCOLS))
    print(f"{'altogether':46}", *(f"{sum(lines.values()):8,}" for lines in columns.values()))


if __name__ == "__main__":
    main()
