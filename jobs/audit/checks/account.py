"""Holds a result folder against what follows from the job's proposal and from the result that the parties signed.

The folder's account and tables are made again by the code that writes them, and compared with what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.audit.checks.signed_result import SignedResult
from jobs.documents.result import ResultDocument, document
from jobs.kinds.registry import kind_of
from jobs.results.destination import FILES, MANIFEST, PARTIES
from jobs.results.record import ResultRecord
from jobs.results.tables import csv_chunks
from jobs.spec.job import JobSpec
from link.version import software_version

UNSIGNED: Final = (
    "report.html",
    "plan and software in result.json",
    "what certificate.json of a release leaves out",
)
"""Of a job's folder what no party has signed, and what does not follow from what they have."""

_ACCOUNT: Final = frozenset({"result.json", "report.html", MANIFEST})
_OF_PROPOSAL: Final = {"job": "name of the job", "task": "task"}
_OF_RESULT: Final = ("n_itemsets", "n_rules", "counted", "estimated", "privacy")
_WORDED: Final = {"disclosure": "disclosure statement", "engine_reason": "reason for its engine"}
_PRINTED: Final = ("model", "itemsets", "rules")
_MOST_SHOWN: Final = 60  # characters of a value in a finding


def account_problems(result: ResultDocument, signed: SignedResult) -> Iterator[str]:
    """What `result.json` and the tables say that does not follow from the proposal and the signed result.

    Args:
        result: The folder's account.
        signed: The job, and the result as far as the parties signed it; all releases have been held against it.

    Raises:
        ConfigurationError: The rules are too many to be found again.
    """
    yield from _strange_files(signed)
    again = _again(result, signed)
    yield from _proposed(result, again)
    if signed.is_known:
        yield from _sizes(result, again)
        yield from _tables(signed, again)


def _again(result: ResultDocument, signed: SignedResult) -> ResultRecord:
    """The result as it must have been before it was written; what is compared elsewhere is taken from `result`."""
    return ResultRecord(
        signed.spec,
        bytes.fromhex(result.job_id),
        bytes.fromhex(result.session_id),
        result.n_rows,
        result.strategy,
        {},
        {},
        signed.finding,
        positions=result.positions,
    )


def _proposed(result: ResultDocument, again: ResultRecord) -> Iterator[str]:
    """What follows from the proposal alone."""
    stated, must = _plain(result), document(replace(again, finding=None))
    for key, name in _OF_PROPOSAL.items():
        if stated[key] != must[key]:
            yield f"its {name} is {_shown(stated[key])}, and that of the proposal is {_shown(must[key])}"
    for key, name in _WORDED.items():
        if stated[key] != must[key]:
            yield f"its {name} is not the one that follows from the proposal{_other_version(result)}"
    if result.seed is not None:
        yield "it names a seed, which only a simulation has"
    for key in _PRINTED:
        if stated[key] is not None:
            yield f"it holds '{key}' itself, which no result folder does and nobody has signed"


def _sizes(result: ResultDocument, again: ResultRecord) -> Iterator[str]:
    """What follows from the signed result."""
    stated, must = _plain(result), document(again)
    for key in _OF_RESULT:
        if stated[key] != must[key]:
            yield f"its {key} is {_shown(stated[key])}, and {_shown(must[key])} follows from what the parties signed"


def _tables(signed: SignedResult, again: ResultRecord) -> Iterator[str]:
    finding = again.finding
    if finding is None:
        return
    for name, table in again.tables.items():
        written = _csv(table)
        for path in (signed.folder / f"{name}.csv", signed.folder / f"{name}.parquet"):
            if path.name in signed.spoiled:
                continue
            if not path.exists():
                yield f"{path.name} is missing, and the job gives it"
                continue
            try:
                same = path.read_bytes() == written if path.suffix == ".csv" else _holds(path, table, written)
            except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
                yield f"{path.name} cannot be read ({type(error).__name__})"
                continue
            if not same:
                yield f"{path.name} does not hold what follows from the {finding.signed_as} that the parties signed"


def _holds(path: Path, table: pa.Table, written: bytes) -> bool:
    """Whether a Parquet file holds a table; cells are compared as text, since no NaN equals itself."""
    read = pq.ParquetFile(path).read()
    return bool(read.schema.equals(table.schema)) and _csv(read) == written


def _csv(table: pa.Table) -> bytes:
    return b"".join(csv_chunks(table))


def _strange_files(signed: SignedResult) -> Iterator[str]:
    """Files of a result folder that this job does not give to the holder of this one."""
    for name in sorted((FILES | {PARTIES}) - _ACCOUNT - _files(signed.spec, signed=signed.signed)):
        if (signed.folder / name).exists():
            yield f"{name} is in the folder, and nobody has signed it: this job gives none here"


def _files(spec: JobSpec, *, signed: bool) -> frozenset[str]:
    """The files that hold a job's result, where its parties signed one."""
    if not signed:
        return frozenset()
    finding = kind_of(spec).finding
    return frozenset() if finding is None else finding.files(spec)


def _plain(result: ResultDocument) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True)


def _other_version(result: ResultDocument) -> str:
    """The words may be those of another version; a person who changed the folder may have written that, too."""
    wrote, reads = result.software.comine, software_version()
    if wrote == reads:
        return ""
    return f" in the words of comine {reads}; it says that comine {wrote} wrote it: verify it with that version, too"


def _shown(value: object) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
