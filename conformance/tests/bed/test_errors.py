"""What the bed's sentences quote of a program's output."""

from __future__ import annotations

import pytest
from bentpipe_conformance.bed.errors import quoted

NFT = """\
Error: No such file or directory; did you mean chain 'x' in table ip 'y'?
add rule ip nat x masquerade
            ^^^
"""


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (NFT, "Error: No such file or directory; did you mean chain 'x' in table ip 'y'?"),
        ("Traceback\n  File x\nValueError: no\n", "ValueError: no"),
        ("starting\ncannot bind.\n---\n", "cannot bind"),
        ("7\n", "7"),
    ],
)
def test_output_of_several_lines_is_quoted_by_the_one_that_tells(output: str, told: str) -> None:
    assert quoted(output) == f" (it said: {told})"


def test_no_output_is_not_quoted() -> None:
    assert quoted(" \n") == ""
