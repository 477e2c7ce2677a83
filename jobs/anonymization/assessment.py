"""What attackers can do with a published table: the measures behind `comine anonymize risk`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.cells import SUPPRESSED
from anonymize.certificate import Certificate
from anonymize.columns import Kind
from anonymize.grouping import Codes, histogram
from anonymize.reading import read_parquet
from anonymize.risk.background import attribute_disclosure
from anonymize.risk.coverage import PublishedTuples
from anonymize.risk.linkage import linkage_attack, population_sizes
from anonymize.risk.nearest import distance_linkage
from anonymize.risk.reidentification import journalist, marketer, prosecutor
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verification.rows import read_release as read_release_csv
from anonymize.verifier import CERTIFICATE, RELEASE_CSV, RELEASE_PARQUET
from jobs.anonymization.inputs import Inputs, read_rows
from jobs.anonymization.risk_document import (
    AttributeLinkage,
    DistanceRisk,
    Homogeneity,
    LinkageRisk,
    PopulationRisk,
    ProsecutorRisk,
    RiskDocument,
)
from jobs.anonymization.spec import CLUSTERING
from link.errors import InputDataError
from link.version import software_version

_NO_CLASSES: Final = "the release has no equivalence classes, so there is no prosecutor risk"
_CENTRES: Final = "no linkage by covering cells: published are centres of classes, which represent others nearby"
_NO_OWNERS: Final = "no linkage by distance: the published quasi-identifiers are no numbers, or not known whose"


def read_release(place: Path, separator: str) -> tuple[pa.Table, Certificate | None]:
    """A published table: a folder with its certificate, or a file.

    Raises:
        InputDataError: There is none, or it cannot be read.
    """
    if not place.is_dir():
        return read_rows(place, separator), None
    certificate = Certificate.read(place / CERTIFICATE)
    for name, read in ((RELEASE_PARQUET, read_parquet), (RELEASE_CSV, read_release_csv)):
        if (place / name).exists():
            return read(place / name), certificate
    raise InputDataError(f"{place} holds neither {RELEASE_CSV} nor {RELEASE_PARQUET}")


def assess(
    published: pa.Table,
    certificate: Certificate | None,
    inputs: Inputs,
    *,
    attacker: Path | None = None,
    population: Path | None = None,
    threshold: float = 0.2,
) -> RiskDocument:
    """Attacks a published table.

    Args:
        published: The rows as everybody sees them.
        certificate: Where there is one, it says which rows are suppressed and whether there are classes.
        inputs: The original, its roles, kinds and hierarchies.
        attacker: People whom the attacker knows, with some of the quasi-identifiers in the clear; the original if None.
        population: Everybody whose row may be in the table, with all quasi-identifiers in the clear.
        threshold: Risk above which rows count as exposed.

    Raises:
        ConfigurationError: The threshold or a column does not suit.
        InputDataError: A file cannot be read, or a published cell cannot be read with the hierarchies.
    """
    spec = inputs.spec
    quasi, sensitive = spec.quasi_identifiers, [name for name in spec.sensitive if name in published.column_names]
    lacking = [name for name in quasi if name not in published.column_names]
    if lacking or not quasi:
        raise InputDataError(
            f'the published table lacks the quasi-identifier "{lacking[0]}"; give the configuration that '
            "it was made with"
            if lacking
            else "the configuration names no quasi-identifiers, so nobody can be linked"
        )
    hidden = _hidden(published, certificate, quasi)
    tuples = PublishedTuples.of(published, quasi, hidden)
    has_classes = bool((certificate is None or certificate.classes is not None) and tuples.sizes.size)
    notes = [] if has_classes else [_NO_CLASSES]
    covers = has_classes and not _are_centres(certificate)
    if has_classes and not covers:
        notes.append(_CENTRES)
    distance = _distance(published, certificate, inputs)
    if distance is None:
        notes.append(_NO_OWNERS)
    people = None if population is None else _people(population, inputs, all_columns=True)
    return RiskDocument(
        schema="comine.anonymization-risk/1",
        software=software_version(),
        rows=published.num_rows,
        suppressed=0 if hidden is None else int(hidden.sum()),
        threshold=threshold,
        prosecutor=_prosecutor(tuples, threshold) if has_classes else None,
        population=_population(published, people, inputs, hidden, threshold) if people and covers else None,
        sensitive={name: _homogeneity(published, name, tuples) for name in sensitive} if has_classes else {},
        linkage=_linkage(published, inputs, attacker, sensitive, hidden) if covers else None,
        distance=distance,
        notes=[*notes, *inputs.warnings],
    )


def _are_centres(certificate: Certificate | None) -> bool:
    """Whether cells are centres, which only a certificate says."""
    if certificate is None:
        return False
    centres = certificate.parameters.get("mondrian", {}).get("release") == "centres"
    return certificate.algorithm in CLUSTERING or (certificate.algorithm == "mondrian" and centres)


def _hidden(published: pa.Table, certificate: Certificate | None, quasi: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Published rows that only a certificate marks as suppressed; None if there are none."""
    if certificate is None or certificate.suppression == "drop" or not certificate.suppressed:
        return None
    hidden = np.ones(published.num_rows, bool)
    for name in quasi:
        hidden &= pc.fill_null(pc.equal(published.column(name).cast(pa.string()), SUPPRESSED), False).to_numpy()
    return hidden


def _prosecutor(tuples: PublishedTuples, threshold: float) -> ProsecutorRisk:
    found = asdict(prosecutor(tuples.sizes, threshold))
    del found["threshold"]
    return ProsecutorRisk(classes=len(tuples.sizes), smallest=int(tuples.sizes.min()), **found)


def _population(
    published: pa.Table, people: Table, inputs: Inputs, hidden: NDArray[np.bool_] | None, threshold: float
) -> PopulationRisk:
    f, whole = population_sizes(published, people, hierarchies=inputs.hierarchies, suppressed=hidden)
    short = int((whole < f).sum())
    if short:
        raise InputDataError(
            f"{short} published classes have more rows than the population has people for them: the population must "
            "hold everybody in the table"
        )
    found = journalist(f, whole, threshold)
    return PopulationRisk(
        people=people.n_rows,
        highest=found.highest,
        average=found.average,
        above=found.above,
        marketer=marketer(f, whole),
    )


def _homogeneity(published: pa.Table, name: str, tuples: PublishedTuples) -> Homogeneity:
    encoded = published.column(name).cast(pa.string()).dictionary_encode().combine_chunks()
    codes: Codes = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    shown = tuples.tuple_of >= 0
    values = len(encoded.dictionary) + 1
    counts = histogram(tuples.tuple_of[shown], len(tuples.sizes), codes[shown] + 1, values)
    return Homogeneity(**asdict(attribute_disclosure(counts)))


def _linkage(
    published: pa.Table,
    inputs: Inputs,
    attacker: Path | None,
    sensitive: list[str],
    hidden: NDArray[np.bool_] | None,
) -> LinkageRisk:
    targets = inputs.table if attacker is None else _people(attacker, inputs, all_columns=False)
    asked: list[str | None] = [*sensitive] or [None]
    attacked = {
        name: linkage_attack(published, targets, sensitive=name, hierarchies=inputs.hierarchies, suppressed=hidden)
        for name in asked
    }
    first = next(iter(attacked.values()))
    found = first.matches > 0
    return LinkageRisk(
        attacker="the original" if attacker is None else attacker.name,
        columns=list(targets.roles.quasi_identifiers),
        targets=targets.n_rows,
        matched=int(found.sum()),
        unique=first.unique,
        expected_links=float(first.identity_risk.mean()),
        attributes={
            name: AttributeLinkage(
                highest=float(each.attribute_risk.max(initial=0.0)),
                average=float(each.attribute_risk[found].mean()) if found.any() else 0.0,
                disclosed=each.disclosed,
            )
            for name, each in attacked.items()
            if name is not None
        },
    )


def _people(path: Path, inputs: Inputs, *, all_columns: bool) -> Table:
    """People in the clear: the quasi-identifiers that their file has, with the kinds of the original.

    Raises:
        InputDataError: The file cannot be read, or lacks quasi-identifiers.
    """
    rows = read_rows(path, inputs.spec.separator)
    quasi = inputs.spec.quasi_identifiers
    known = [name for name in quasi if name in rows.column_names]
    lacking = [name for name in quasi if name not in known]
    if not known or (all_columns and lacking):
        raise InputDataError(
            f'{path} lacks the quasi-identifier "{lacking[0]}"; its columns are {", ".join(rows.column_names)}'
        )
    kinds: dict[str, Kind] = {name: inputs.table.columns[name].kind for name in known}
    orders = {name: inputs.table.columns[name].domain for name, kind in kinds.items() if kind == "ordinal"}
    return Table.of(rows.select(known), Roles(quasi_identifiers=tuple(known)), kinds, orders, "drop")


def _distance(published: pa.Table, certificate: Certificate | None, inputs: Inputs) -> DistanceRisk | None:
    """Linkage by distance, where published records are numbers and it is known whose they are."""
    owners = _owners(published, certificate, inputs)
    if owners is None:
        return None
    columns = [
        name
        for name in inputs.spec.quasi_identifiers
        if inputs.table.columns[name].kind == "numeric"
        and (pa.types.is_integer(published.column(name).type) or pa.types.is_floating(published.column(name).type))
    ]
    if not columns:
        return None
    original = np.stack([inputs.table.columns[name].numbers[inputs.table.columns[name].codes] for name in columns], 1)
    shown = np.stack([published.column(name).to_numpy().astype(np.float64) for name in columns], 1)
    found = distance_linkage(original, shown, owners)
    return DistanceRisk(columns=columns, expected_links=found.expected_links, right=int(found.right.sum()))


def _owners(published: pa.Table, certificate: Certificate | None, inputs: Inputs) -> NDArray[np.int64] | None:
    """The original row of each published one; None where that is not known, or records are synthetic."""
    if certificate is None or (certificate.classes is None and certificate.replacement is None):
        return None
    if certificate.parameters.get("row_order") == "sorted":
        return None
    kept = np.arange(inputs.table.n_rows)
    if certificate.replacement is not None:
        if certificate.replacement.omitted is None:  # as of sorted rows
            return None
        kept = kept[~np.isin(inputs.table.kept, certificate.replacement.omitted)]
    return kept if len(kept) == published.num_rows else None
