"""Inputs chosen by coverage: libFuzzer by way of atheris, where that package is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click


def guide(
    read: Callable[[bytes], object], corpus: Path, out: Path, *, runs: int, seed: int, longest: int
) -> NoReturn:
    """Let libFuzzer choose inputs for what raises when one breaks it, and end the process.

    Args:
        read: what reads an input.
        corpus: a directory of inputs, which is only read.
        out: what reaches something new is kept below it, and what breaks something, both under the
            corpus's name.
        runs: how many inputs.
        seed: of libFuzzer's choices.
        longest: octets of an input.

    Raises:
        click.ClickException: atheris is not installed.
    """
    try:
        import atheris
    except ImportError:
        raise click.ClickException(
            "atheris is not installed; `pip install 'bentpipe[fuzz]'` on x86-64."
        ) from None
    for path in sorted(corpus.iterdir()):
        read(path.read_bytes())  # what is loaded at first use is no input's doing
    atheris.instrument_all()
    found = out / f"{corpus.name}-corpus"
    found.mkdir(parents=True, exist_ok=True)
    # Memory and time are bounded by who reads; libFuzzer's alarm would be taken for theirs.
    limits = [f"-runs={runs}", f"-seed={seed}", f"-max_len={longest}", "-timeout=0",
              "-rss_limit_mb=0", f"-artifact_prefix={out}/{corpus.name}-"]  # fmt: skip
    atheris.Setup(
        [sys.argv[0], *limits, str(found), str(corpus)], lambda octets: read(octets) and None
    )
    atheris.Fuzz()
    sys.exit(0)
