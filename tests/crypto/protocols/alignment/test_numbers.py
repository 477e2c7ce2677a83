"""The numbers of alignments, as their page computes them: its program prints what it says, and that is built."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crypto.primitives.okvs import DENSE, Layout
from crypto.protocols.alignment.bins import table_of
from crypto.protocols.alignment.matches import compared_bits
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.alignment.zero_shares import WORD_BYTES
from crypto.protocols.transfers.oprf import Parts
from crypto.protocols.transfers.oprf_check import rows_of
from crypto.protocols.union.size_classes import LISTS

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "protocols" / "alignment-parameters.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def program() -> tuple[dict[str, Any], str]:
    """What the page's program defines, and what it prints."""
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    space, printed = dict[str, Any](), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "alignment-parameters.md", "exec"), space)
    return space, printed.getvalue()


def test_the_program_prints_what_the_page_says(program) -> None:
    (said,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert program[1] == said


def test_every_parameter_is_the_one_that_is_built(program) -> None:
    space, _ = program
    for places in (64, 1_024, 114_688, 1 << 24):
        assert Layout.of(min(places, 1 << 17)).rows == 3 * space["ceil"](1.3 * min(places, 1 << 17) / 3) + DENSE
        assert value_bytes(places) == space["ceil"]((40 + 2 * space["log2"](places)) / 8)
        for pairs in (1, 4, 10):
            assert compared_bits(table_of(places), pairs) == space["compared"](places, pairs)[0]
    assert (DENSE, WORD_BYTES, rows_of(Layout.of(1 << 17)) // 128) == (40, 8, 1_334)
    assert [Parts.of(points).number for points in (1 << 17, 1 << 20, 1 << 24)] == [1, 9, 131]


def test_comparisons_err_in_one_of_2_to_the_40_runs_at_every_size() -> None:
    sizes = [LISTS.size(place) for place in range(LISTS.beyond)]
    assert sizes[-1] == LISTS.most
    for places, parties in product(sizes, (2, 3, 5, 8, 64)):
        table = table_of(places)
        for pairs in (parties - 1, parties * (parties - 1) // 2):
            bits = compared_bits(table, pairs)
            assert 2 ** (bits - 41) < table.sparse * pairs <= 2 ** (bits - 40)  # and one bit less would not do
            assert bits <= 96


def test_no_bound_is_above_what_the_page_allows(program) -> None:
    space, _ = program
    assert max(space["bins"](points) for points in range(64, 260, 16)) < -40.7
    assert max(space["store"](keys) for keys in (64, 80, 96, 128)) < -42
