"""The frontier of privacy and utility: an algorithm over a grid of parameters, behind `comine anonymize explore`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from anonymize.release import Release
from anonymize.risk.frontier import Frontier, FrontierPoint, frontier, grid
from jobs.anonymization.frontier_document import FrontierDocument, Point, Refusal
from jobs.anonymization.frontier_page import report
from jobs.anonymization.inputs import Inputs, requirements_of
from jobs.anonymization.running import run
from jobs.anonymization.spec import WITHOUT_CLASSES, AnonymizeSection
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from jobs.results.tables import csv_chunks
from jobs.spec.toml import validate
from link.errors import ConfigurationError
from link.version import software_version

TABLE: Final = "frontier.csv"
DOCUMENT: Final = "frontier.json"
REPORT: Final = "report.html"
PARAMETERS: Final = ("k", "l", "t", "max_suppression")


@dataclass(frozen=True)
class Explored:
    """A frontier, and what each of its runs gave besides risk and loss.

    Attributes:
        found: Runs and refusals.
        facts: By parameters, classes and suppressed rows.
    """

    found: Frontier
    facts: Mapping[tuple[Any, ...], tuple[int, int]]


def explore(inputs: Inputs, values: Mapping[str, Sequence[Any]]) -> Explored:
    """Runs a configuration with every combination of some parameters.

    Args:
        inputs: What to anonymise; what is not varied stays as configured.
        values: Some of `PARAMETERS`, each with the values to try.

    Raises:
        ConfigurationError: The algorithm has no classes, a varied model is not configured, or no combination gives a
            release.
    """
    spec = inputs.spec
    if spec.algorithm in WITHOUT_CLASSES:
        raise ConfigurationError(
            f'algorithm = "{spec.algorithm}" forms no classes whose risk could be compared; explore another one'
        )
    for name in ("l", "t"):
        if name in values and not getattr(spec.model, name):
            raise ConfigurationError(
                f"--{name} varies [anonymize.model] {name}, which the configuration does not have; add it there"
            )
    facts: dict[tuple[Any, ...], tuple[int, int]] = {}

    def anonymise(**chosen: Any) -> Release:
        changed = _with(spec, chosen)
        requirements = requirements_of(changed, inputs.all_hierarchies)
        release = run(replace(inputs, spec=changed, requirements=requirements))
        facts[tuple(chosen.values())] = (release.n_classes, len(release.suppressed))
        return release

    found = frontier(anonymise, grid(**values))
    if not found.points:
        _, reason = found.refused[0]
        raise ConfigurationError(f"no combination gives a release; of the first the reason is: {reason}")
    return Explored(found, facts)


def document(inputs: Inputs, explored: Explored) -> FrontierDocument:
    """The document of an exploration."""
    best = {id(point) for point in explored.found.pareto}
    return FrontierDocument(
        schema="comine.anonymization-frontier/1",
        software=software_version(),
        algorithm=inputs.spec.algorithm,
        rows=inputs.table.n_rows,
        points=[_point(point, explored, id(point) in best) for point in explored.found.points],
        refused=[Refusal(parameters=_json(chosen), reason=reason) for chosen, reason in explored.found.refused],
    )


def holds_earlier(folder: Path) -> bool:
    """Whether a folder holds an earlier exploration and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return DOCUMENT in present and present <= {TABLE, DOCUMENT, REPORT, MANIFEST}


def write_folder(out: Path, exploration: FrontierDocument) -> None:
    """Writes `frontier.csv`, `frontier.json`, `report.html` and a manifest.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier exploration.
        ResourceError: The disk is full, or the folder cannot be written.
    """

    def fill(draft: Path) -> None:
        draft.mkdir(parents=True)
        with (draft / TABLE).open("wb") as file:
            file.writelines(csv_chunks(_table(exploration)))
        contents = json.dumps(exploration.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False)
        (draft / DOCUMENT).write_text(contents + "\n", encoding="utf-8")
        (draft / REPORT).write_text(report(exploration), encoding="utf-8")
        seal(draft, None)

    write_whole(out, fill, holds_earlier)


def _with(spec: AnonymizeSection, chosen: Mapping[str, Any]) -> AnonymizeSection:
    """A configuration with other parameters; l and t are those of all columns that have one."""
    model = spec.model
    if "k" in chosen:
        model = model.model_copy(update={"k": chosen["k"]})
    for name in ("l", "t"):
        if name in chosen:
            sections = [
                validate(type(each), {**each.model_dump(exclude_unset=True), "value": chosen[name]}, f"--{name}")
                for each in getattr(model, name)
            ]
            model = model.model_copy(update={name: tuple(sections)})
    more = {"max_suppression": chosen["max_suppression"]} if "max_suppression" in chosen else {}
    return spec.model_copy(update={"model": model, **more})


def _point(point: FrontierPoint, explored: Explored, pareto: bool) -> Point:
    classes, suppressed = explored.facts[tuple(point.parameters.values())]
    return Point(
        parameters=_json(point.parameters),
        risk=point.risk,
        loss=point.loss,
        classes=classes,
        suppressed=suppressed,
        pareto=pareto,
    )


def _json(parameters: Mapping[str, Any]) -> dict[str, int | float]:
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in parameters.items()}


def _table(exploration: FrontierDocument) -> pa.Table:
    """Points, then refusals, which have a reason instead of figures."""
    points = [
        {**each.parameters, **each.model_dump(exclude={"parameters"}), "reason": None} for each in exploration.points
    ]
    refused = [{**each.parameters, "reason": each.reason} for each in exploration.refused]
    names = dict.fromkeys(name for row in (*points, *refused) for name in row)
    return pa.table({name: [row.get(name) for row in (*points, *refused)] for name in names})
