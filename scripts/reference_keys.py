"""Writes `docs/reference-keys.md`, every key of the configuration files, from the models that read them.

What a key means is said once, in the docstring of its model.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from coordinator.console.settings import ConsoleFile
from jobs.collections.route import RouteSpec
from jobs.collections.spec import CollectionSpec
from jobs.federation import Federation
from jobs.spec.job import JobSpec
from jobs.spec.meanings import meanings
from party.config import PartyConfig
from relay.config import RelayConfig

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference-keys.md"
FILES: Final = {
    "job.toml": (JobSpec, "A job of several parties: [run jobs](tasks/run-jobs.md)."),
    "party.toml": (PartyConfig, "A node; [party.toml](reference-party-toml.md) explains what belongs together."),
    "federation.toml": (Federation, "The parties and how they are reached; the same file at all parties."),
    "console.toml": (ConsoleFile, "[A coordinator's console](tasks/console.md#a-coordinators-console)."),
    "relay.toml": (RelayConfig, "A [relay](tasks/relay.md)."),
    "collection.toml": (CollectionSpec, "A collection of the [frequency service](tasks/frequency-service.md)."),
    "route.toml": (RouteSpec, "A route of the [shuffler](protocols/shuffle.md)."),
}
_HEAD: Final = """# Every key

All keys of the files of jobs, nodes, federations, relays and collections, made from the models that read them. A key
that is not here is refused, with its file and its name. Values in `code` are written as they stand, lists in `[ ]`. The
keys of `anonymize.toml` are on [its own page](tasks/anonymisation.md#all-keys-of-the-configuration).
"""
_PLAIN: Final = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "object": "table",
}


def page() -> str:
    """The whole page."""
    parts, seen = [_HEAD], dict[type[BaseModel], str]()
    for name, (model, what) in FILES.items():
        parts.append(f"\n## {name}\n\n{what}\n")
        parts += _sections(model, "", name, "", seen)
    return "".join(parts)


def _sections(
    model: type[BaseModel], path: str, file: str, several: str, seen: dict[type[BaseModel], str]
) -> Iterator[str]:
    """The table of a model's own keys, then those of the tables in it; what was `seen` is told once."""
    rows = [row for field in model.model_fields for row in _row(model, field)]
    heading = f"{file} `{path}`{several}"
    if path:
        yield f"\n### {heading}\n"
    if model in seen:
        yield f"\nAs in {_linked(seen[model])}.\n"
        return
    seen[model] = heading
    if rows:
        yield "\n| key | value | default | meaning |\n|---|---|---|---|\n" + "".join(rows)
    for name, field in model.model_fields.items():
        key = field.alias or name
        for inner in _models(field.annotation):
            below = f"{path.strip('[]')}.{key}".strip(".")
            listed, by_name = _is_in(field.annotation, tuple), _is_in(field.annotation, dict)
            below = f"{below}.NAME" if by_name else below
            written = f"[[{below}]]" if listed and not by_name else f"[{below}]"
            subject = f" {_subject(inner)}" if len(list(_models(field.annotation))) > 1 else ""
            yield from _sections(inner, written, file, subject, seen)


def _linked(heading: str) -> str:
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return f"[{heading}](#{anchor})"


def _row(model: type[BaseModel], name: str) -> Iterator[str]:
    field = model.model_fields[name]
    key = field.alias or name
    if any(_models(field.annotation)):
        return
    schema = model.model_json_schema()
    shown = schema["properties"][key]
    default = "required" if field.is_required() else _written(shown.get("default"))
    meaning = meanings(model).get(name, meanings(model).get(key.removesuffix("_"), meanings(model).get(key, "")))
    yield f"| `{key}` | {_value(shown, schema)} | {default} | {meaning.replace('|', chr(92) + '|')} |\n"


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The tables that a value may be, or hold."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _is_in(annotation: Any, kind: type) -> bool:
    origin = getattr(annotation, "__origin__", None)
    return origin is kind or any(_is_in(part, kind) for part in get_args(annotation))


def _subject(model: type[BaseModel]) -> str:
    return f"({(inspect.getdoc(model) or model.__name__).partition('.')[0].partition(':')[0]})"


def _written(default: Any) -> str:
    if default is None or default in ([], {}):
        return ""
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def _value(schema: dict[str, Any], whole: dict[str, Any]) -> str:
    """What may be written, in words."""
    if "$ref" in schema:
        return _value(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    if choices:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in choices)
    if several := schema.get("anyOf", schema.get("oneOf")):
        kinds = list(dict.fromkeys(_value(each, whole) for each in several if each.get("type") != "null"))
        if any(kind.startswith("number") for kind in kinds):  # an exact decimal may be written as text, too
            kinds = [kind for kind in kinds if kind not in ("text", "whole number")]
        return " or ".join(kinds)
    if schema.get("type") == "array":
        inner = _value(schema["items"], whole) if schema.get("items") else "values"
        return f"list of {inner}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"table: by name, {_value(schema['additionalProperties'], whole)}"
    word = "path" if schema.get("format") == "path" else _PLAIN.get(schema.get("type", ""), "value")
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if low is not None and high is not None:
        return f"{word}, {_plain(low)} to {_plain(high)}"
    if low is not None:
        return f"{word}, {'above' if 'exclusiveMinimum' in schema else 'at least'} {_plain(low)}"
    return word if high is None else f"{word}, at most {_plain(high)}"


def _plain(limit: float) -> str:
    return f"{int(limit):,}" if limit == int(limit) else f"{limit}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
