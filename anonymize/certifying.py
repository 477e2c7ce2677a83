"""Makes release folders: `release.csv`, `release.parquet` and the `certificate.json` that states what holds of them.

Of condensed records there is `moments.json` too, and `labels.json` where hierarchies have labels of their own: what
these two hold is not for publication.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from anonymize import csv_lines
from anonymize.certificate import (
    SCHEMA,
    Certificate,
    CertifiedColumn,
    Claims,
    Groups,
    Hashes,
    Software,
    sha256_of,
)
from anonymize.claims import claims_of
from anonymize.evidence import (
    groups_of,
    labels_of,
    moments_of,
    replacement_of,
    scales_of,
    sensitive_counts,
    suppression_of,
)
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import Requirements
from anonymize.release import Release, plain
from anonymize.risk.coverage import NO_HIERARCHIES
from anonymize.tables import Table
from anonymize.utility.summary import summary
from anonymize.verifier import CERTIFICATE, LABELS, MOMENTS, RELEASE_CSV, RELEASE_PARQUET
from link.version import software_version


@dataclass(frozen=True)
class Sources:
    """Where a release came from, for the hashes; all of it is optional.

    Attributes:
        input: The file that was anonymised.
        hierarchies: By column, the file of its hierarchy.
        configuration: The file that said how.
        parameters: What the user asked for, as JSON values.
    """

    input: Path | None = None
    hierarchies: Mapping[str, Path] = field(default_factory=dict)
    configuration: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


_CSV_ROWS: Final = 1 << 16
_NO_SOURCES: Final = Sources()
_NO_PARAMETERS: Final[Mapping[str, Any]] = MappingProxyType({})


def publish_folder(
    folder: Path | str,
    release: Release,
    table: Table | None,
    requirements: Requirements | None,
    *,
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
    sources: Sources = _NO_SOURCES,
) -> Certificate:
    """Writes a release with its certificate.

    Args:
        folder: Made if it is not there; files of these names in it are replaced.
        release: What an algorithm returned.
        table: The input; None of a condensed stream, whose records nobody has any more.
        requirements: What every class meets; None where nothing is claimed.
        hierarchies: Those that the release was generalised by.
        sources: What is hashed besides the release.

    Returns:
        The certificate, as it was written.

    Raises:
        InputDataError: A source cannot be read.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name in (MOMENTS, LABELS):
        (place / name).unlink(missing_ok=True)  # an earlier release's
    labels = None if table is None else labels_of(release, table, hierarchies)
    if labels is not None:
        labels.write(place / LABELS)
    hashes = Hashes(
        release=write_release(place, release.table),
        labels=None if labels is None else sha256_of(place / LABELS),
        input=None if sources.input is None else sha256_of(sources.input),
        hierarchies={name: sha256_of(path) for name, path in sources.hierarchies.items()},
        configuration=None if sources.configuration is None else sha256_of(sources.configuration),
    )
    groups = None
    if (moments := moments_of(release)) is not None:
        moments.write(place / MOMENTS)
        groups = groups_of(release, sha256_of(place / MOMENTS))
    certificate = certify(
        release, table, requirements, hashes, groups, hierarchies=hierarchies, parameters=sources.parameters
    )
    certificate.write(place / CERTIFICATE)
    return certificate


def write_release(folder: Path, table: pa.Table) -> dict[str, str]:
    """Writes the rows of a release as CSV and as Parquet.

    Args:
        folder: Exists.
        table: The rows.

    Returns:
        By name of the file, its SHA-256 in hexadecimal.
    """
    published = plain(table).combine_chunks()  # pages end where chunks do
    write_csv(folder / RELEASE_CSV, published)
    pyarrow.parquet.write_table(published, folder / RELEASE_PARQUET, compression="zstd")
    return {name: sha256_of(folder / name) for name in (RELEASE_CSV, RELEASE_PARQUET)}


def certify(
    release: Release,
    table: Table | None,
    requirements: Requirements | None,
    hashes: Hashes,
    groups: Groups | None = None,
    *,
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
    parameters: Mapping[str, Any] = _NO_PARAMETERS,
) -> Certificate:
    """The certificate of a release.

    Args:
        release: What an algorithm returned.
        table: The input; None of a condensed stream, whose records nobody has any more.
        requirements: What every class meets; None where nothing is claimed.
        hashes: Of the files that hold the release, and of its sources.
        groups: What is published of condensed groups.
        hierarchies: Those that the release was generalised by.
        parameters: What the user asked for, as JSON values.
    """
    claims = claims_of(requirements, table)
    rows = table.n_rows if table is not None else sum(groups.sizes) if groups else 0
    described: dict[str, Any] = {}
    if table is not None:
        described = {
            "sensitive_counts": sensitive_counts(release, table, requirements),
            "scales": scales_of(release, table, hierarchies) if release.cell_loss is not None else None,
            "metrics": summary(release, table, hierarchies, claims.k),
            "replacement": replacement_of(release, table),
        }
    return sealed(
        hierarchies,
        release.node,
        algorithm=release.algorithm,
        model=claims,
        columns=_columns(release, table),
        rows=rows,
        published=release.table.num_rows,
        suppressed=len(release.suppressed),
        suppression=suppression_of(release),
        classes=None if release.classes is None else release.n_classes,
        statement=_statement(release, claims),
        statistics=dict(release.statistics),
        groups=groups,
        parameters=dict(parameters),
        hashes=hashes,
        **described,
    )


def sealed(hierarchies: Mapping[str, Hierarchy], node: Mapping[str, int] | None, **facts: Any) -> Certificate:
    """A certificate with its digest.

    Args:
        hierarchies: Those that the release was generalised by.
        node: Level of each quasi-identifier, where the whole column has one level.
        facts: All else that it states, by the names of its fields.
    """
    levels = None if node is None else {name: int(level) for name, level in node.items()}
    certificate = Certificate(
        schema=SCHEMA,
        node=levels,
        heights=None if levels is None else {name: hierarchies[name].height for name in levels},
        software=Software(
            comine=software_version(), python=platform.python_version(), numpy=np.__version__, pyarrow=pa.__version__
        ),
        **facts,
    )
    return certificate.sealed()


def _columns(release: Release, table: Table | None) -> dict[str, CertifiedColumn]:
    """What each column is. Insensitive columns that synthetic records do not have are left out."""
    if table is None:
        return {name: CertifiedColumn(role="quasi_identifiers", kind="numeric") for name in release.table.column_names}
    own = {
        name: CertifiedColumn.model_validate({"role": table.roles.of(name), "kind": column.kind})
        for name, column in table.columns.items()
        if name in release.table.column_names or name in table.roles.identifiers
    }
    added = [name for name in release.table.column_names if name not in table.columns]
    return own | {name: CertifiedColumn(role="insensitive", kind="numeric", added=True) for name in added}


def _statement(release: Release, claims: Claims) -> str:
    if release.classes is None:
        kind = "drawn from groups of records" if release.rows is None else "moved away from their originals"
        return f"No equivalence classes: the published records are {kind}, and no k holds of them."
    return statement_of(release.n_classes, claims)


def statement_of(classes: int, claims: Claims) -> str:
    """What a certificate says of equivalence classes."""
    least = f" of at least {claims.k} rows each" if claims.k else ""
    return f"{classes} equivalence classes{least}; each meets every condition of the model."


def write_csv(path: Path, table: pa.Table) -> None:
    """Writes rows as CSV, the same bytes for the same rows: cells as text, in quotes only where they need them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_cells(file, table)


def write_cells(file: IO[str], table: pa.Table) -> None:
    """Writes rows as `release.csv` has them; `anonymize.verification.rows` reads them again."""
    file.write(csv_lines.header(table.column_names))
    for start in range(0, table.num_rows, _CSV_ROWS):
        file.writelines(csv_lines.lines(table.slice(start, _CSV_ROWS)).to_pylist())
