from __future__ import annotations

import pytest
from bentpipe_conformance.models.values import NotAValue, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-1", -1),
        ("TRUE", True),
        ('"hk99"', "hk99"),
        ("<<0, 1>>", (0, 1)),
        ("<<>>", ()),
        ("{}", frozenset()),
        ("{1, 3}", frozenset({1, 3})),
        ("1..3", frozenset({1, 2, 3})),
        ("(0 :> 2 @@ 3 :> 1)", {0: 2, 3: 1}),
        (
            '<<[n |-> 1, type |-> "STAT", gaps |-> {3}]>>',
            ({"n": 1, "type": "STAT", "gaps": frozenset({3})},),
        ),
        ('{[type |-> "END"]}', frozenset({(("type", "END"),)})),
        ("Nobody", "Nobody"),
    ],
)
def test_printed_value_parsed(text: str, value: object) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["", "<<1", "[n 1]", "{1 2}", "1 2", "(1 :> )", "?", "<<1,", "[n"])
def test_malformed_value_refused(text: str) -> None:
    with pytest.raises(NotAValue):
        parse_value(text)
