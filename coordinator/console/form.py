"""The fields of a job, from the commented file that `comine job new` writes, and the file that they make."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from jobs.kinds.key import Key
from jobs.new_job import render
from link.files.toml_text import quoted

_TABLE: Final = re.compile(r"(?P<off># )?\[(?P<name>[a-z_.-]+)\](?:\s+# (?P<meaning>.*))?")
_ENTRY: Final = re.compile(r"(?P<off># )?(?P<key>[A-Za-z_][\w-]*) = (?P<value>.*?)(?:\s+# (?P<meaning>.*))?")
_MORE: Final = re.compile(r"\s*# (?P<meaning>.*)")
_GIVEN: Final = ("task", "parties", "partition")  # which the form says by itself
_DATASET: Final = "dataset"  # as long as the file is read for its fields: a party may call its own like nothing in TOML
_CATALOGUE: Final = "items.txt"  # what the list of items is called, which is in the job and in no file
_ITEMS: Final = "a public catalogue, one item a line; where it may be left out, the parties then find the items"

How = Literal["text", "list", "value", "lines", "table"]


class Field(NamedTuple):
    """A key of the job file, as people fill it in.

    Attributes:
        table: Where it stands.
        key: Its name; empty of a whole table.
        value: As it stands in the form; empty of a key that is left out.
        example: As it might.
        meaning: What it says.
        how: A text without quotes, several with commas between, a value as TOML writes it, lines, or lines of TOML.
    """

    table: str
    key: str
    value: str
    example: str
    meaning: str
    how: How

    @property
    def name(self) -> str:
        """In the form."""
        return f"{self.table}.{self.key}" if self.key else self.table


def fields_of(key: Key, parties: Sequence[str], dataset: str) -> list[Field]:
    """The fields of a kind of job, in the order of its file.

    Args:
        key: The kind.
        parties: Of the job.
        dataset: Its dataset.

    Raises:
        ConfigurationError: The kind is another distribution's and writes no file.
        UsageError: There are fewer than two parties.
    """
    text, _ = render(key, parties, _DATASET)
    found = list[Field]()
    for entries in _tables(text):
        filled = [each for each in entries if each.value]
        if filled and all(each.value.startswith(("{", "[[")) for each in filled):
            lines = "\n".join(f"{each.key} = {each.value}" for each in filled)
            found.append(Field(entries[0].table, "", lines, "", entries[0].meaning, "table"))
            continue
        for each in entries:
            if each.key == "universe":
                found.append(
                    each._replace(key="catalogue", value="", example="bread\nmilk", meaning=_ITEMS, how="lines")
                )
            elif each.table == "job" and each.key == "dataset":
                found.append(_typed(each)._replace(value=dataset))
            elif each.table != "job" or each.key not in _GIVEN:
                found.append(_typed(each))
    return found


def values_of(text: str) -> dict[str, str]:
    """What the fields of a form would hold that is filled in like a job file, by their names.

    Args:
        text: The file, with a line for each key.
    """
    return {field.name: field.value for entries in _tables(text) for field in map(_typed, entries) if field.value}


def written(key: Key, parties: Sequence[str], form: Mapping[str, str]) -> str:
    """The job file that a form makes, whether or not its values are good.

    Args:
        key: The kind of the job.
        parties: Of the job.
        form: By name of a field what was filled in.
    """
    tables: dict[str, list[str]] = {"job": [f"task = {quoted(key.task)}", f"parties = {quoted(list(parties))}"]}
    tables["job"].append(f"partition = {quoted(key.partition)}")
    for field in fields_of(key, parties, ""):
        if given := form.get(field.name, "").replace("\r\n", "\n").strip():
            tables.setdefault(field.table, []).extend(_lines(field, given))
    return "\n".join("\n".join((f"[{name}]", *lines, "")) for name, lines in tables.items())


def _tables(text: str) -> Iterator[list[Field]]:
    """The entries of each table of a commented file; those that are commented out have an example and no value."""
    table, off, said, entries = "", False, "", list[Field]()
    for line in text.splitlines():
        if found := _TABLE.fullmatch(line):
            if entries:
                yield entries
            table, off, said, entries = found["name"], bool(found["off"]), found["meaning"] or "", []
        elif table and (found := _ENTRY.fullmatch(line)):
            value, meaning = found["value"], found["meaning"] or ("" if entries else said)
            left_out = off or bool(found["off"])
            entries.append(Field(table, found["key"], "" if left_out else value, value, meaning, "value"))
        elif entries and (found := _MORE.fullmatch(line)):
            entries[-1] = entries[-1]._replace(meaning=f"{entries[-1].meaning} {found['meaning']}")
    if entries:
        yield entries


def _typed(field: Field) -> Field:
    """A field whose value people type without quotes, where it is a text or a list of such."""
    example: Any = tomllib.loads(f"value = {field.example}")["value"]
    if isinstance(example, str):
        shown, how = example, "text"
    elif isinstance(example, list) and all(isinstance(each, str) for each in example):
        shown, how = ", ".join(example), "list"
    else:
        shown, how = field.example, "value"
    return field._replace(value=shown if field.value else "", example=shown, how=how)  # type: ignore[arg-type]


def _lines(field: Field, given: str) -> list[str]:
    match field.how:
        case "text":
            return [f"{field.key} = {quoted(given)}"]
        case "list":
            return [f"{field.key} = {quoted([each.strip() for each in given.split(',') if each.strip()])}"]
        case "lines":
            items = sorted({line for line in given.split("\n") if line}, key=str.encode)
            return [f"universe = {quoted(_CATALOGUE)}", f"{field.key} = {quoted(items)}"]
        case _:
            return [f"{field.key} = {given}" if field.key else given]
