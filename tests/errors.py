"""Errors that tests provoke: which code, about which party, and, in one table, in which words.

A test says by `fails` which code must come. What people read then is a row of `sentences.tsv`: code, sentence with … in
the place of what varies, and the test that provokes it. Who rewords a sentence runs its tests with
COMINE_SENTENCES=write, which adds what they say now, and removes the old row. A property may also provoke what other
tests do, and what the product's code has: its draws may meet rare sentences.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import walk_tb

import pytest
from hypothesis import currently_in_test_context

from link.errors import BY_CODE, ComineError
from tests.product_texts import is_made_of_a_text, packages

TABLE = Path(__file__).with_name("sentences.tsv")
WRITES = os.environ.get("COMINE_SENTENCES") == "write"
PLACE = re.compile(r"(/[^\s/,;:'\"]+){2,}")  # a path of this machine


@contextmanager
def fails(code: str, *, party: str | None = None) -> Iterator[pytest.ExceptionInfo[ComineError]]:
    """What is done within must end with an error of a code, in the words that the table has for this test.

    Args:
        code: Of the error, as in "E100".
        party: Whom it must be about; not looked at without.
    """
    with pytest.raises(BY_CODE[code]) as raised:
        yield raised
    error = raised.value
    assert error.code == code, error
    assert party is None or error.party == party, error
    said = is_listed(code, error.message, running()) or (
        currently_in_test_context() and is_known(code, error.message, _raised_in(error))
    )
    assert said, f"{TABLE.name} has no such sentence of this test: {error.message}"


def is_known(code: str, message: str, near: Iterable[Path]) -> bool:
    """Whether any test has the sentence, or the product a text of its form: what chance draws, no table has in full.

    Args:
        code: Of the error.
        message: What it says.
        near: Modules that raised it, whose texts are looked at first.
    """
    others = (sentence for (known, _), each in sentences().items() if known == code for sentence in each)
    return (
        is_made_of_a_text(message, near)
        or any(_pattern(sentence).fullmatch(message) for sentence in others)
        or is_made_of_a_text(message)
    )


def _raised_in(error: ComineError) -> list[Path]:
    """The product's modules through which an error came, the one that raised it first."""
    files = (Path(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__))
    return [file for file in files if any(map(file.is_relative_to, packages()))][::-1]


def is_listed(code: str, message: str, test: str) -> bool:
    """Whether the table has a sentence of that test; where sentences are written it then has."""
    if any(_pattern(sentence).fullmatch(message) for sentence in sentences().get((code, test), ())):
        return True
    if WRITES:
        with TABLE.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several workers may write
            rows = {*file.read().splitlines(), "\t".join((code, PLACE.sub("…", message), test))}
            file.seek(0)
            file.write("".join(f"{row}\n" for row in sorted(rows)))
    return WRITES


@cache
def sentences() -> dict[tuple[str, str], list[str]]:
    """The table: sentences by code and test."""
    found = defaultdict(list)
    for row in TABLE.read_text().splitlines():
        code, sentence, test = row.split("\t")
        found[code, test].append(sentence)
    return dict(found)


def running() -> str:
    """The name of the test that runs, without its file, so that it may move, and without its case."""
    return os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition("[")[0].partition(" ")[0]


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, sentence.split("…"))), re.DOTALL)
