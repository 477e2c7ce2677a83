"""Adult at three parties: joint anonymisation among nodes, beside the pooled rows and each party alone."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.files import from_csv
from anonymize.models import KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.roles import Roles
from anonymize.tables import Table as Rows
from anonymize.verifier import verify
from benchmarks import datasets
from benchmarks.anonymization.anonymize import COLUMNS
from benchmarks.measure import run_process
from benchmarks.settings import PARTIES, Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation

K = 5
CASES = (("optimal", "0", 2, 5), ("optimal", "0.02", 2, 60), ("mondrian", "0", 1, 60), ("mondrian", "0", 2, 60))


def run(settings: Settings) -> list[Table]:
    """Whole jobs, `comine job run`, result folder included."""
    table = Table(
        f"Adult at {len(PARTIES)} parties, k = {K}: seconds of the whole process `comine job run` among nodes",
        (
            "algorithm",
            "MaxSup",
            "insider k",
            "seconds",
            "target s",
            "GCP",
            "pooled GCP",
            "alone",
            "classes",
            "MB",
            "verified",
        ),
        notes=[
            "nodes, coordinator and result folder on this machine; all of them share its cores",
            "pooled GCP: of all rows in one place, without the insider rule",
            "alone: each party for itself, weighted by its rows",
        ],
    )
    folder = datasets.folder().parent / "adult"
    if not (folder / "adult.csv").is_file():
        table.notes.append(f"skipped: no data in {folder}; set COMINE_REFERENCE_DATA")
        return [table]
    rows = _rows(folder)
    if settings.quick:
        rows = rows.slice(0, 2000)
    owners = np.random.default_rng(1).integers(0, len(PARTIES), rows.num_rows)
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        place = Path(name)
        federation = _federation(place, rows, owners)
        with federation.running():
            asyncio.run(federation.ready())
            for algorithm, share, insider_k, target in CASES[:1] if settings.quick else CASES:
                settings.tell(f"joint {algorithm}, MaxSup {share}, insider k {insider_k}")
                (place / "job.toml").write_text(_job(folder, algorithm, share, insider_k))
                command = [sys.executable, "-P", "-m", "comine", "job", "run", str(place / "job.toml")]
                seconds = run_process([*command, "--federation", federation.file, "--out", place / "out"]).seconds
                told = json.loads((place / "out" / "certificate.json").read_text())
                costs = json.loads((place / "out" / "result.json").read_text())["parties"].values()
                pooled, alone = _pooled_and_alone(folder, rows, owners, algorithm, share)
                table.add(
                    *(algorithm, share, insider_k, seconds, target, told["metrics"]["gcp"], pooled, alone),
                    *(told["classes"], sum(cost["bytes_sent"] for cost in costs) / 1e6),
                    "yes" if verify(place / "out").ok else "NO",
                )
    return [table]


def _rows(folder: Path) -> pa.Table:
    text = arrow_csv.ConvertOptions(column_types=dict.fromkeys((*COLUMNS, "occupation"), pa.string()))
    return arrow_csv.read_csv(
        folder / "adult.csv", parse_options=arrow_csv.ParseOptions(delimiter=";"), convert_options=text
    ).select([*COLUMNS, "occupation"])


def _federation(place: Path, rows: pa.Table, owners: np.ndarray[tuple[int], np.dtype[np.int64]]) -> LoopbackFederation:
    """Nodes that serve tables of rows of their own."""
    files: Mapping[str, Path] = {party: place / f"{party}.csv" for party in PARTIES}
    for number, path in enumerate(files.values()):
        arrow_csv.write_csv(rows.filter(pa.array(owners == number)), path)
    federation = LoopbackFederation.prepare(place, "people", files)
    roles = ", ".join([*(f'{name} = ["quasi_identifiers"]' for name in COLUMNS), 'occupation = ["sensitive"]'])
    for party in PARTIES:
        path = place / party / "party.toml"
        text = path.read_text().replace('kind = "transactions"', 'kind = "table"\nid = []')
        path.write_text(
            text.replace('format = "basket"', 'format = "csv"').replace(
                '"rules"]', f'"rules", "anonymize"]\ncolumns = {{ {roles} }}'
            )
        )
    return federation


def _job(folder: Path, algorithm: str, share: str, insider_k: int) -> str:
    columns, hierarchies = "", ""
    for name in COLUMNS:
        if name == "age":
            columns += f'{name} = {{ kind = "numeric" }}\n'
        path = folder / f"adult_hierarchy_{name}.csv"
        with path.open(newline="") as file:
            hierarchies += f"{name} = {json.dumps(list(csv.reader(file, delimiter=';')))}\n"
    suppression = "" if algorithm == "mondrian" else f"max_suppression = {share}\n"
    return (
        f'[job]\nname = "adult"\ntask = "anonymize"\nparties = {json.dumps(PARTIES)}\ndataset = "people"\n'
        f"[union]\nbound = 11000\n"
        f'[anonymize]\nquasi_identifiers = {json.dumps(COLUMNS)}\nsensitive = ["occupation"]\n'
        f'algorithm = "{algorithm}"\n{suppression}insider_k = {insider_k}\n[anonymize.model]\nk = {K}\n'
        f"[anonymize.columns]\noccupation = {{ most_bytes = 24 }}\n{columns}[anonymize.hierarchies]\n{hierarchies}"
    )


def _pooled_and_alone(
    folder: Path, rows: pa.Table, owners: np.ndarray[tuple[int], np.dtype[np.int64]], algorithm: str, share: str
) -> tuple[float, float]:
    """GCP of all rows in one place, and of each party for itself, weighted by its rows."""
    alone = [rows.filter(pa.array(owners == number)) for number in range(len(PARTIES))]
    losses = [_loss(folder, part, algorithm, share) for part in (rows, *alone)]
    return losses[0], sum(loss * part.num_rows for loss, part in zip(losses[1:], alone, strict=True)) / rows.num_rows


def _loss(folder: Path, rows: pa.Table, algorithm: str, share: str) -> float:
    trees = {name: from_csv(folder / f"adult_hierarchy_{name}.csv", ";") for name in COLUMNS}
    table = Rows.of(rows, Roles(quasi_identifiers=COLUMNS, sensitive=("occupation",)), {"age": "numeric"})
    wanted = Requirements((KAnonymity(K),))
    if algorithm == "mondrian":
        found = mondrian(table, wanted, hierarchies={name: tree for name, tree in trees.items() if name != "age"})
    else:
        found = optimal(table, trees, wanted, max_suppression=share)
    assert found.cell_loss is not None
    return float(found.cell_loss.mean())
