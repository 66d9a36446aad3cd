from __future__ import annotations

import pytest
from bentpipe_reference.common.address import address_number, address_text
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("text", ["10.0.0", "10.0.0.256", "a.b.c.d", "", "1.2.3.4.5"])
def test_address_when_malformed_names_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match="four numbers"):
        address_number(text)


@given(st.integers(0, 0xFFFFFFFF))
def test_address_when_printed_reads_back(number: int) -> None:
    assert address_number(address_text(number)) == number
