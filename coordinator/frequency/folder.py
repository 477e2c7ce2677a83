"""The folder of a simulated collection: estimates, `result.json` and `report.html`, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from coordinator.frequency.report import report
from coordinator.frequency.simulation import Errors, Outcome, Simulation
from jobs.documents.written_json import write_json
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from jobs.results.tables import write_csv
from ldp.domain import Domain
from ldp.registry import oracle_names
from link.version import software_version

ESTIMATES: Final = "estimates.csv"
COMPARISON: Final = "comparison.csv"

_FILES: Final = frozenset({ESTIMATES, COMPARISON, "result.json", "report.html", MANIFEST})


def write_folder(out: Path, simulation: Simulation) -> None:
    """Writes the folder; an earlier one in its place is replaced in one step.

    One mechanism has its `estimates.csv` in the folder. Each of several has a folder of its name for it, beside
    `comparison.csv`.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier simulation.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    write_whole(out, lambda draft: _fill(draft, simulation), holds_earlier)


def holds_earlier(folder: Path) -> bool:
    """Whether a folder holds an earlier simulation and nothing else."""
    present = {path.name: path for path in folder.iterdir()}
    return "result.json" in present and all(
        path.is_file() if name in _FILES else name in oracle_names() and _holds_estimates(path)
        for name, path in present.items()
    )


def _holds_estimates(folder: Path) -> bool:
    return folder.is_dir() and all(path.name == ESTIMATES for path in folder.iterdir())


def document(simulation: Simulation) -> dict[str, Any]:
    """`result.json`: what was simulated, and each mechanism with its parameters, its privacy, its costs and errors."""
    request, collection = simulation.request, simulation.collection
    return {
        "schema": "comine.frequency/1",
        "software": software_version(),
        "n": len(collection.codes),
        "d": collection.domain.size,
        "domain": "given" if collection.public else "values seen",
        "epsilon": request.epsilon,
        "runs": request.runs,
        "seed": request.seed,
        "confidence": request.confidence,
        "top": request.top,
        "post_processing": request.post_processing,
        "mechanisms": [_mechanism(outcome) for outcome in simulation.outcomes],
    }


def _mechanism(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "mechanism": outcome.oracle.name,
        "parameters": _parameters(outcome),
        "exact_epsilon": outcome.oracle.exact_epsilon,
        "report_bytes": outcome.oracle.report_bytes,
        "client_seconds": outcome.client_s,
        "server_seconds": outcome.server_s,
        "errors": _errors(outcome.errors),
    }
    if outcome.reason:
        found["reason"] = outcome.reason
    return found


def _errors(errors: Errors) -> dict[str, float]:
    found = {
        "rmse": errors.rmse,
        "theory_rmse": errors.theory_rmse,
        "ratio": errors.ratio,
        "ratio_deviation": errors.chance,
        "mean_absolute": errors.mean_absolute,
        "largest": errors.largest,
        "coverage": errors.coverage,
        "top_found": errors.top_found,
    }
    if errors.post_processed_rmse is not None:
        found["post_processed_rmse"] = errors.post_processed_rmse
    return found


def _parameters(outcome: Outcome) -> dict[str, Any]:
    """The mechanism's parameters; of the domain only its size."""
    return {
        name: value.size if isinstance(value, Domain) else value for name, value in outcome.oracle.get_params().items()
    }


def _fill(draft: Path, simulation: Simulation) -> None:
    draft.mkdir(parents=True)
    alone = len(simulation.outcomes) == 1
    for outcome in simulation.outcomes:
        place = draft if alone else draft / outcome.oracle.name
        place.mkdir(exist_ok=True)
        write_csv(place / ESTIMATES, _estimates(simulation, outcome))
    contents = document(simulation)
    if not alone:
        write_csv(draft / COMPARISON, _comparison(contents["mechanisms"]))
    write_json(draft / "result.json", contents)
    (draft / "report.html").write_text(report(simulation), encoding="utf-8")
    seal(draft, None)


def _estimates(simulation: Simulation, outcome: Outcome) -> pa.Table:
    columns = {
        "value": simulation.collection.domain.names(),
        "count": simulation.collection.counts,
        "estimate": outcome.estimate.counts,
        "variance": outcome.estimate.variances,
        "low": outcome.low,
        "high": outcome.high,
    }
    if outcome.post_processed is not None:
        columns["post_processed"] = outcome.post_processed
    return pa.table(columns)


def _comparison(mechanisms: Sequence[dict[str, Any]]) -> pa.Table:
    plain = ("mechanism", "exact_epsilon", "report_bytes", "client_seconds", "server_seconds")
    columns = {name: [each[name] for each in mechanisms] for name in plain}
    columns |= {name: [each["errors"][name] for each in mechanisms] for name in mechanisms[0]["errors"]}
    return pa.table(columns)
