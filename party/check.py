"""`comine party check`: is the node fit to start, and are its data what their owner means?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from party.data.dataset_check import DatasetCheck, Profile, TableProfile
    from party.examination import Examination


def check(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
    show_items: Annotated[
        bool, typer.Option("--show-items", help="Name some of the items that a hint is about.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the node's file, certificate, federation, port and data before it starts; exits 0 only if it can."""
    from link.errors import ConfigurationError
    from party.examination import examine

    found = examine(party_toml, show_items=show_items)
    if as_json:
        typer.echo(json.dumps(as_data(party_toml, found, show_items=show_items), indent=2, ensure_ascii=False))
    else:
        for line in as_lines(found, show_items=show_items):
            typer.echo(line)
    if not found.fit:
        raise typer.Exit(ConfigurationError.exit_code)


def as_data(party_toml: Path, found: Examination, *, show_items: bool) -> dict[str, Any]:
    """An examination as `comine.check/1`."""
    return {
        "schema": "comine.check/1",
        "file": str(party_toml),
        "party": found.party,
        "fit": found.fit,
        "checks": [
            {"subject": finding.subject, "status": finding.status, "sentence": finding.sentence}
            for finding in found.findings
        ],
        "datasets": [dataset_data(dataset, show_items=show_items) for dataset in found.datasets],
    }


def dataset_data(dataset: DatasetCheck, *, show_items: bool) -> dict[str, Any]:
    """What was found out about a dataset, as `comine.check/1` has it."""
    data: dict[str, Any] = {"name": dataset.name, "format": dataset.format, "problem": dataset.problem or None}
    if dataset.profile is not None:
        data["profile"] = _profile_data(dataset.profile)
        data["publishable"] = dataset.publishable.as_toml() or None
        data["engine"] = dataset.engine
        data["engines"] = [
            {"engine": cost.engine, "seconds": cost.seconds, "memory_bytes": cost.memory, "fits": cost.fits}
            for cost in dataset.costs
        ]
    data["hints"] = [
        {"kind": hint.kind, "sentence": hint.sentence} | ({"examples": list(hint.examples)} if show_items else {})
        for hint in dataset.hints
    ]
    return data


def _profile_data(profile: Profile | TableProfile) -> dict[str, Any]:
    from party.data.dataset_check import TableProfile

    data: dict[str, Any] = {"rows": profile.rows, "items": profile.items}
    if isinstance(profile, TableProfile):
        data |= {"ids": list(profile.ids), "columns": profile.columns, "empty_cells": profile.empty_cells}
    else:
        fewest, median, most = profile.row_items
        data["row_items"] = {"min": fewest, "median": median, "max": most}
        data["empty_rows"] = profile.empty_rows
    return data | {
        "rare_items": profile.rare_items,
        "rare_share": profile.rare_share,
        "longest_item_bytes": profile.longest_item,
    }


def as_lines(found: Examination, *, show_items: bool) -> list[str]:
    """An examination for people."""
    lines = [f"{finding.status:<8} {finding.subject:<14} {finding.sentence}" for finding in found.findings]
    for dataset in found.datasets:
        lines += dataset_lines(dataset, show_items=show_items)
    if found.fit:
        hints = sum(len(dataset.hints) for dataset in found.datasets)
        remark = f"; look at the {hints} hints above" if hints > 1 else "; look at the hint above" if hints else ""
        return [*lines, f"{found.party} is fit to start{remark}"]
    return [*lines, f"{found.party or 'the node'} is not fit to start; see the problems above"]


def dataset_lines(dataset: DatasetCheck, *, show_items: bool) -> list[str]:
    """What was found out about a dataset, for people."""
    from party.data.dataset_check import RARE, TableProfile
    from party.data.engine_costs import CANDIDATES, size

    profile = dataset.profile
    if profile is None:
        return [f"problem  dataset        {dataset.name}: {dataset.problem}"]
    if isinstance(profile, TableProfile):
        rows, ids = "rows", ", ".join(profile.ids)
        sizes = f"{profile.rows:,} rows with {profile.columns:,} columns and {profile.items:,} distinct items"
        named = f"ids in {ids}" if ids else "no ids: for models of rows alone"
        cells = f"{named}; empty cells: {profile.empty_cells:,} of {profile.rows * profile.columns:,}"
    else:
        rows, (fewest, median, most) = "transactions", profile.row_items
        sizes = f"{profile.rows:,} transactions with {profile.items:,} distinct items"
        cells = f"items of a transaction: {fewest} to {most}, median {median:g}; without any: {profile.empty_rows:,}"
    lines = [
        f"ok       dataset        {dataset.name}: {sizes}",
        f"{'':<23} {cells}",
        f"{'':<23} in fewer than {RARE} {rows}: {profile.rare_items:,} items ({profile.rare_share:.0%})",
        f"{'':<23} longest item: {profile.longest_item} bytes",
    ]
    if not dataset.publishes and (publishable := dataset.publishable.as_toml()):
        lines.append(f"{'':<23} plans know no sizes of it; to publish these coarse ones, paste under its [[dataset]]:")
        lines += [f"{'':<25} {line}" for line in publishable.splitlines()]
    if dataset.costs:
        what = (
            "to look once at all ids and cells takes about, with the memory of a job over columns:"
            if isinstance(profile, TableProfile)
            else f"a level of {CANDIDATES:,} candidates takes about:"
        )
        lines.append(f"{'':<23} engine {dataset.engine}; {what}")
        for cost in dataset.costs:
            fits = "" if cost.fits else ", for which there is no room here"
            lines.append(f"{'':<25} {cost.engine:<10} {cost.seconds:>8.1f} s, {size(cost.memory)} of memory{fits}")
    for hint in dataset.hints:
        examples = f" ({', '.join(map(_visible, hint.examples))})" if show_items and hint.examples else ""
        lines.append(f"hint     dataset        {dataset.name}: {hint.sentence}{examples}")
    return lines


def _visible(item: str) -> str:
    return '"' + "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in item) + '"'
