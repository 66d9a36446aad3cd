"""A designer's edits: how long until a model says what each of them breaks.

The edits are of different kinds: an arithmetic slip, a forgotten condition, an order exchanged, a
state kept too long, a promise too small. None is a named mutant.
"""

from __future__ import annotations

import os

from bentpipe_conformance.benchmarks.model import Figure, Report, below
from bentpipe_conformance.models.edits import Edit, ask
from bentpipe_conformance.models.manifest import load_models, model_root
from bentpipe_conformance.models.tool import find_tool

SECONDS = 60.0
"""Until the broken property and its ladder stand there."""


EDITS = (
    Edit("sack-newreno", "a timeout goes on at snd_max",
         "/\\ sndNxt' = sndUna + 1", "/\\ sndNxt' = sndMax"),
    Edit("sack-newreno", "a partial acknowledgment adds nothing",
         "Max(@ - covered + 1, 1)", "Max(@ - covered, 1)"),
    Edit("stp-data", "a STAT of any age is used",
         "Fresh(stat) == stat.age <= vt_pa", "Fresh(stat) == TRUE"),
    Edit("stp-data", "a POLL leaves out the last SD sent",
         "Asked == vt_s", "Asked == Max(vt_s - 1, vt_a)"),
    Edit("stp-conn", "a BGAK acknowledges no data",
         "AckOf(f) == f.rcv", "AckOf(f) == 0"),
    Edit("stp-conn", "cookies are kept when a call fails",
         "Voided(cookies) == <<>>", "Voided(cookies) == cookies"),
    Edit("rwbp-recovery", "one copy at a timeout",
         "Copies(packet) == <<packet, packet>>", "Copies(packet) == <<packet>>"),
    Edit("rwbp-recovery", "new packets do not wait for lost ones",
         "NewMayGo == lost = {}", "NewMayGo == TRUE"),
    Edit("rwbp-flow", "the gateway's credit shrinks with its queue",
         "GatewayLimit == passed + GatewayQueue",
         "GatewayLimit == passed + GatewayQueue - Len(gateway)"),
    Edit("rwbp-flow", "a lost packet costs no turn",
         "/\\ last' = c\n", "/\\ last' = IF again[c] > 0 THEN last ELSE c\n"),
)  # fmt: skip


def designer(_repeat: int) -> Report:
    """The answers to the ten edits, in seconds."""
    root = model_root()
    tool, models = find_tool(root), load_models(root)
    workers = min(2, os.cpu_count() or 1)
    figures: list[Figure] = []
    for edit in EDITS:
        told = ask(tool, models[edit.model], edit, workers, SECONDS)
        broken = told.broken
        found = "NOTHING FOUND"
        if broken is not None:
            steps = len(broken.outcome.trace) if broken.outcome is not None else 0
            found = f"{broken.violated} in {broken.run.name}, {steps} states"
        name = f"{edit.model}, {edit.about}: {found}"
        seconds = told.seconds if broken is not None else float("inf")
        figures.append(below(name, seconds, SECONDS))
    return Report("seconds until a model says what an edit breaks", tuple(figures))
