"""The table of sentences, which `tests.errors.fails` holds against what tests provoke: it has no row of no use, and
what properties provoke is in it, or in the product's code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import BY_CODE, MalformedMessage
from tests.errors import TABLE, fails, sentences


def test_every_sentence_is_of_a_code_and_of_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    tests = {name for text in texts for name in re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE)}
    assert {code for code, _ in sentences()} <= BY_CODE.keys()
    assert {test for _, test in sentences()} <= tests


def test_the_table_is_in_order_and_names_nothing_twice() -> None:
    rows = TABLE.read_text().splitlines()
    assert rows == sorted(set(rows))


@pytest.mark.parametrize(
    ("message", "known"),
    [
        ("a.tsv is damaged; run the job again, and the rows are encoded anew", True),  # the code's, with a gap
        ("south: north sent an opening: 3 values of 'n' were expected", True),  # with words before it
        ("north sent a blue opening; its friends must be asked", False),
        ("north; its node must be checked", False),  # the end of many
        ("", False),
    ],
)
def test_what_a_property_provokes_is_a_sentence_of_the_product(
    message: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.errors.WRITES", False)

    @settings(max_examples=1, database=None)
    @given(st.just(message))
    def held(drawn: str) -> None:
        with fails("E402"):
            raise MalformedMessage(drawn)

    if known:
        held()
    else:
        with pytest.raises(AssertionError, match="no such sentence"):
            held()
