"""The table of sentences, which `tests.errors.fails` holds against what tests provoke: it has no row of no use."""

from __future__ import annotations

import re
from pathlib import Path

from link.errors import BY_CODE
from tests.errors import TABLE, sentences


def test_every_sentence_is_of_a_code_and_of_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    tests = {name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)}
    assert {code for code, _ in sentences()} <= BY_CODE.keys()
    assert {test for _, test in sentences()} <= tests


def test_the_table_is_in_order_and_names_nothing_twice() -> None:
    rows = TABLE.read_text().splitlines()
    assert rows == sorted(set(rows))
