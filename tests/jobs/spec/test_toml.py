"""What files of TOML may say, and what is told of those that say something else."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from jobs.spec.toml import TomlTable, read_toml, validate
from tests.errors import fails


class Limits(TomlTable):
    most: int = 1
    least: int | None = None
    strict: bool = False
    name: str | None = None


class File(TomlTable):
    limits: Limits
    more: tuple[Limits, ...] = ()


def read(tmp_path: Path, text: str) -> File:
    path = tmp_path / "file.toml"
    path.write_text(text, encoding="utf-8")
    return validate(File, read_toml(path), "file.toml")


@pytest.mark.parametrize("value", ["true", '"3"', '"true"', "[3]"])
@pytest.mark.parametrize("key", ["most", "least"])
def test_a_whole_number_is_written_as_one(tmp_path: Path, key: str, value: str) -> None:
    with fails("E100"):
        read(tmp_path, f"[limits]\n{key} = {value}\n")
    assert getattr(read(tmp_path, f"[limits]\n{key} = 3\n").limits, key) == 3


@pytest.mark.parametrize("value", ["1", "0", '"true"', "1.0"])
def test_a_truth_value_is_written_as_one(tmp_path: Path, value: str) -> None:
    with fails("E100"):
        read(tmp_path, f"[limits]\nstrict = {value}\n")
    assert read(tmp_path, "[limits]\nstrict = true\n").limits.strict


def test_numbers_with_a_point_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(b"\xef\xbb\xbfx = 0.1\n")  # with a byte order mark, as some editors write
    assert read_toml(path) == {"x": Decimal("0.1")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[limits]\nmsot = 3\n",
        "[limits]\nxyz = 3\n",
        "[limits]\n[limit]\n",
        "[limits]\n[[more]]\nmsot = 3\n",
    ],
)
def test_what_is_missing_or_unknown_is_named(tmp_path: Path, text: str) -> None:
    with fails("E100"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 9000, "0o" + "7" * 9000, "-9223372036854775809", "9" * 9000, "9223372036854775808"]
)
@pytest.mark.parametrize(
    "text", ["[limits]\nmost = {}\n", "[limits]\n[[more]]\nmost = 1\nleast = {}\n", "x = [[{}]]\n"]
)
def test_a_whole_number_is_of_64_bits(tmp_path: Path, number: str, text: str) -> None:
    with fails("E100"):
        read(tmp_path, text.format(number))
    assert read(tmp_path, "[limits]\nmost = 0x7fffffffffffffff\n").limits.most == 2**63 - 1
