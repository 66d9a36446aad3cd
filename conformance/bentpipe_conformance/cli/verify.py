"""``bentpipe verify``: judging a bundle's packets again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from bentpipe_conformance.cli.options import examples, json_option
from bentpipe_conformance.cli.outcome import FAILED, OPEN, PASSED, explained
from bentpipe_conformance.cli.output import output, print_json, working

MOST_SHOWN = 40
"""Differences that are printed; ``--json`` has all."""


@click.command(epilog=examples("verify bentpipe-runs/linux-geo-rfc", "verify run --signer lab.pub"))
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--signer", type=click.Path(path_type=Path), metavar="FILE",
    help="It has to be signed by the public SSH key in FILE (or by one of ssh-keygen's allowed "
         "signers).",
)  # fmt: skip
@json_option("Print what differs, and the result as the packets give it, as JSON.")
def verify(bundle: Path, signer: Path | None, as_json: bool) -> None:
    """Make everything in a bundle again from its plan and packets, offline, and compare.

    Nothing stored is believed: verdicts, findings, timing errors, result.json, junit.xml,
    report.html and certificate.html are made again. Exit status 0 when the bundle is complete and
    all of it is reproduced, 1 when the packets contradict something (each is named) or the signer
    has not signed it, 3 when it cannot be judged whole: it is damaged, partial, unsigned, or
    another bentpipe's.
    """
    from bentpipe_conformance.evidence.attestation import SigningError
    from bentpipe_conformance.evidence.bundle import BundleError
    from bentpipe_conformance.run.verification import verify as verify_bundle

    with explained(BundleError, SigningError), working("verify", quiet=as_json) as told:
        done = verify_bundle(bundle, told, signer)
    if as_json:
        print_json({**done.result, "agrees": done.reproduced, "signed": done.signed,
                    "doubts": done.doubts,
                    "differences": [asdict(item) for item in done.differences]})  # fmt: skip
    else:
        console = output()

        def say(text: str, style: str = "") -> None:
            console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

        for sentence in done.doubts:
            say(f"open     {sentence}", "yellow")
        for item in done.differences[:MOST_SHOWN]:
            say(f"differs  {item}", "bold red")
        if len(done.differences) > MOST_SHOWN:
            say(f"and {len(done.differences) - MOST_SHOWN} more differences; see --json")
        if done.signed:
            say(done.signed)
        overall = done.result.get("verdict", "none")
        if done.reproduced:
            word = f"everything stored is reproduced (overall: {overall})"
        elif done.contradicted:
            word = f"the packets do NOT support what is stored (they give: {overall})"
        elif done.differences:
            word = f"this bentpipe would say something else (overall: {overall})"
        else:
            word = f"nothing contradicts them, but nothing is certified (overall: {overall})"
        say(f"{done.cases} cases judged again; {word}")
    status = FAILED if done.contradicted else OPEN
    raise click.exceptions.Exit(PASSED if done.reproduced else status)
