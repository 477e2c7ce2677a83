"""`comine explain` without a code: the list of all."""

from __future__ import annotations

import json

from link.errors import BY_CODE
from tests.cli.conftest import Comine


def test_all_codes_are_listed(comine: Comine) -> None:
    ran = comine("explain")
    assert (ran.code, ran.err) == (0, "")
    heads, *rows = [line.split("\t") for line in ran.out.splitlines()]
    assert heads == ["code", "exit code", "meaning"]
    assert [(code, int(exit_code)) for code, exit_code, _ in rows] == sorted(
        (code, error.exit_code) for code, error in BY_CODE.items()
    )
    assert ["E101", "10", "A data file cannot be used"] in rows


def test_all_codes_as_json(comine: Comine) -> None:
    found = json.loads(comine("explain", "--json").out)
    assert found["schema"] == "comine.explain-list/1"
    assert [error["code"] for error in found["errors"]] == sorted(BY_CODE)
    one = json.loads(comine("explain", "E300", "--json").out)
    assert {key: one[key] for key in ("code", "exit_code", "title")} in found["errors"]
