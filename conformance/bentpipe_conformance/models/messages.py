"""What TLC prints with ``-tool``, read as it comes."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_START = re.compile(r"@!@!@STARTMSG (\d+):(\d+) @!@!@")
_END = re.compile(r"@!@!@ENDMSG \d+ @!@!@")
COUNTS = re.compile(
    r"([\d,]+) states generated.*?([\d,]+) distinct states found.*?([\d,]+) states left"
)
_GENERATED = re.compile(r"([\d,]+) states generated")
_STATE = re.compile(r"(\d+): <(.*)>\s*")
_NUMBER = re.compile(r"(\d+)")

# Codes of `-tool` messages.
_INVARIANT_AT_START, _INVARIANT, _ACTION, _TEMPORAL, _DEADLOCK = 2107, 2110, 2112, 2116, 2114
_IMPLIED_INIT = 2108
# A temporal property that is FALSE whatever happens: constants alone decide it.
_FALSE = 2230
_VIOLATIONS = {
    _INVARIANT_AT_START, _INVARIANT, _ACTION, _TEMPORAL, _DEADLOCK, _IMPLIED_INIT, _FALSE,
}  # fmt: skip
_COUNT, _DEPTH, _PROGRESS, _TRACE, _STUTTERS, _BACK, _OUT_OF_MEMORY = (
    2199, 2194, 2200, 2217, 2218, 2122, 1001,
)  # fmt: skip
_SUCCESS, _ENDED, _SIMULATED = 2193, 2186, 2209
_TAKEN = 2772
_ACTION_TAKEN = re.compile(r"<(\w+) line .*>: \d+:(\d+)")
_QUOTED = 5000
_QUOTING = 1000  # a failure of TLC itself; the message within it says why
_CHATTER = (
    "Parsing file", "Semantic processing", "Semantic errors", "Errors:", "Parse Error",
    "Abort messages:", "Fatal errors",
)  # fmt: skip
_FRAME = (
    "TLC threw an unexpected exception", "This was probably caused by", "See the User Output",
    "The exception was a ",
)  # fmt: skip
_BEFORE = ("The behavior up to this point", "The error occurred when TLC")
_UNPARSED = re.compile(r"Could not parse module \w+ from file (\S+)")
_TAILS = ("Residual stack trace", " while looking in these directories")
_COMPLAINTS = ("***", "Error", "error:", "Exception")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    generated: int
    distinct: int
    queue: int
    depth: int
    seconds: float

    @property
    def rate(self) -> float:
        """States generated per second."""
        return self.generated / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class State:
    """One state of a counterexample: the action that led to it and the variables as text."""

    action: str
    variables: dict[str, str]


@dataclass(slots=True)
class Outcome:
    """What a finished run found.

    Attributes:
        violated: TLC's sentence on what is violated; empty when nothing is.
        name: the violated invariant or action property when TLC names it.
        trace: the counterexample.
        loop: index into the trace where the behaviour goes back to; None when it does not.
        generated: states generated.
        distinct: distinct states found.
        depth: depth of the search.
        seconds: wall clock.
        log: the file with all that TLC printed.
        actions: how often each action was taken, where that was counted.
        behaviours: of a simulation, how many were drawn; 0 for a search.
    """

    log: Path
    violated: str = ""
    name: str = ""
    trace: list[State] = field(default_factory=list)
    loop: int | None = None
    generated: int = 0
    distinct: int = 0
    depth: int = 0
    seconds: float = 0.0
    actions: dict[str, int] = field(default_factory=dict)
    behaviours: int = 0


class Reading:
    """Turns the messages of one run into an outcome, as they come.

    Attributes:
        outcome: what has been found so far.
        last: how far the run was when it told so last.
        out_of_memory: whether Java had no more memory.
        succeeded: whether the search ended and found no violation.
    """

    def __init__(
        self, outcome: Outcome, report: Callable[[Progress], None], behaviours: int
    ) -> None:
        self.outcome = outcome
        self._behaviours = behaviours
        self.last = Progress(0, 0, 0, 0, 0.0)
        self.out_of_memory = False
        self.succeeded = False
        self._started = time.monotonic()
        self._report = report
        self._errors: list[str] = []
        self._quoting = False

    @property
    def seconds(self) -> float:
        """Wall clock since the start."""
        return time.monotonic() - self._started

    def read(self, lines: Iterable[str], copy: IO[str]) -> None:
        """Read all lines, with a copy of each."""
        for code, severity, text in _messages(lines, copy):
            self._message(code, severity, text.strip())

    def complaint(self, status: int) -> str:
        """Why the run came to nothing, in one sentence."""
        told = (_told(text) for text in self._errors if not text.startswith(_BEFORE))
        text = next(filter(None, told), "")
        for tail in _TAILS:
            text = text.partition(tail)[0]
        text = text[:300].strip().rstrip(".")
        if not text and status == -signal.SIGKILL:
            return (
                "TLC was killed, as a system does that has no memory left; allow less with "
                "--memory, or run fewer at a time with --workers."
            )
        if not text:
            return f"TLC ended with status {status} and said nothing."
        if found := _UNPARSED.search("\n".join(self._errors)):
            text = f"{found[1]}: {text}"
        return text

    def _message(self, code: int, severity: int, text: str) -> None:
        outcome = self.outcome
        if code in (_PROGRESS, _COUNT):
            self._count(code, text)
        elif code == _DEPTH and (found := _NUMBER.search(text)):
            outcome.depth = int(found[1])
        elif code == _TAKEN and (taken := _ACTION_TAKEN.match(text)):
            outcome.actions[taken[1]] = outcome.actions.get(taken[1], 0) + int(taken[2])
        elif code == _SIMULATED and (found := _GENERATED.search(text)):
            outcome.generated = int(found[1].replace(",", ""))
        elif code == _ENDED and self._behaviours and not outcome.violated and not self._errors:
            self.succeeded, outcome.behaviours = True, self._behaviours
        elif code == _SUCCESS:
            self.succeeded = True
        elif code == _OUT_OF_MEMORY or "OutOfMemoryError" in text:
            self.out_of_memory = True
        elif code in _VIOLATIONS and not outcome.violated:
            first = text.splitlines()[0]
            outcome.violated = first
            outcome.name = _violated_name(first)
            if code in (_INVARIANT_AT_START, _IMPLIED_INIT):
                outcome.trace.append(State("Initial predicate", _variables(text.splitlines()[1:])))
        elif code == _TRACE:
            self._state(text)
        elif code == _STUTTERS:
            outcome.loop = len(outcome.trace) - 1
        elif code == _BACK and (found := _NUMBER.search(text)):
            outcome.loop = int(found[1]) - 1
        elif text and (
            severity == 1
            or code >= _QUOTED
            or self._quoting
            or (code == 0 and any(mark in text for mark in _COMPLAINTS))
        ):
            self._errors.append(text)
        self._quoting = code == _QUOTING

    def _count(self, code: int, text: str) -> None:
        if (found := COUNTS.search(text)) is None:
            return
        generated, distinct, queue = (int(part.replace(",", "")) for part in found.groups())
        depth = _NUMBER.search(text)
        if code == _COUNT:
            self.outcome.generated, self.outcome.distinct = generated, distinct
        self.last = Progress(
            generated, distinct, queue,
            int(depth[1]) if depth and code == _PROGRESS else self.last.depth,
            self.seconds,
        )  # fmt: skip
        self._report(self.last)

    def _state(self, text: str) -> None:
        head, *rest = text.splitlines()
        found = _STATE.match(head)
        action = found[2].split(" line ")[0] if found else head
        self.outcome.trace.append(State(action, _variables(rest)))


def _messages(stream: Iterable[str], copy: IO[str]) -> Iterator[tuple[int, int, str]]:
    """Code, severity and text of each message; lines between messages have code 0."""
    code, severity = 0, 0
    lines: list[str] = []
    for line in stream:
        copy.write(line)
        if found := _START.search(line):
            if code or lines:  # a message may quote another one
                yield code, severity, "".join(lines)
            code, severity, lines = int(found[1]), int(found[2]), []
        elif _END.match(line):
            if code:
                yield code, severity, "".join(lines)
            code, severity, lines = 0, 0, []
        else:
            lines.append(line)
    if lines:
        yield code, severity, "".join(lines)


def _told(text: str) -> str:
    """What an error message says, without the frame around it."""
    lines = (line.strip(" *") for line in text.splitlines())
    told = [line.removeprefix(": ") for line in lines
            if line and not line.startswith((*_CHATTER, *_FRAME))]  # fmt: skip
    return " ".join(" ".join(dict.fromkeys(told)).split())


def _violated_name(sentence: str) -> str:
    kinds = r"(?:Invariant|Action property|Property|The property of) (\w+) (?:is|of)"
    found = re.match(kinds, sentence)
    return found[1] if found and found[1] != "line" else ""


def _variables(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        match = re.match(r"(?:/\\ )?(\w+) = (.*)", line)
        if match and (line.startswith("/\\ ") or not name):
            name = match[1]
            found[name] = match[2]
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found
