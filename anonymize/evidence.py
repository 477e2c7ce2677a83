"""What a certificate holds besides its claims: sensitive counts, scales of loss, groups, parameters of replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from anonymize.cells import SUPPRESSED, Interval, Members, parse
from anonymize.certificate import Groups, Replacement, Scale
from anonymize.columns import Column
from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import Requirements
from anonymize.release import Release
from anonymize.tables import Table
from anonymize.verification.labels import Labels
from anonymize.verification.losses import generalisation_loss
from anonymize.verification.moments import GroupMoments
from anonymize.verification.rows import text_table
from crypto.primitives.randomness import Randomness

Suppression = Literal["drop", "blank", "keep"]


def sensitive_counts(
    release: Release, table: Table, requirements: Requirements | None
) -> dict[str, dict[str, int] | None]:
    """Rows of the input with each sensitive value, by column.

    What the input has more than the release are the suppressed rows. Who is in no published class is one of these,
    so that the counts disclose of them what a class discloses. They are withheld (None) unless the suppressed rows meet
    the requirements as a class of their own; the rule is that for publishing such rows ("keep").

    Args:
        release: What an algorithm returned.
        table: Its input.
        requirements: What every class meets.

    Returns:
        Nothing where there are no classes: no model needs counts then.
    """
    if release.classes is None:
        return {}
    counts: dict[str, dict[str, int] | None] = {
        column.name: dict(zip(column.texts, column.counts.tolist(), strict=True)) for column in table.sensitive
    }
    if not len(release.suppressed) or suppression_of(release) == "keep":
        return counts
    others = np.ones(table.n_rows, np.int64)
    others[release.suppressed] = 0
    classes = Histograms.of(others, 2, table.sensitive)
    return disclosable(counts, requirements, table, classes)


def disclosable(
    counts: dict[str, dict[str, int] | None], requirements: Requirements | None, table: Table, suppressed: Histograms
) -> dict[str, dict[str, int] | None]:
    """Sensitive counts, withheld unless suppressed rows that are not published meet the requirements as a class.

    Args:
        counts: Of the input.
        requirements: What every class meets.
        table: The input.
        suppressed: The suppressed rows as the first class.
    """
    if requirements is not None and requirements.fitted(table).satisfied(suppressed)[0]:
        return counts
    return dict.fromkeys(counts)


def suppression_of(release: Release) -> Suppression:
    """What became of a release's suppressed rows."""
    if release.rows is None or not len(release.suppressed):
        return "drop"
    hidden = np.isin(release.rows, release.suppressed)
    if not hidden.any():
        return "drop"
    return "blank" if release.classes is not None and (release.classes[hidden] < 0).all() else "keep"


def scales_of(release: Release, table: Table, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Scale] | None:
    """How the published cells' loss is recomputed; None where cells do not determine it, such as centres."""
    cells = text_table(release.table.select(list(table.roles.quasi_identifiers)))
    scales = scales_of_cells(
        {name: cells.column(name).unique().to_pylist() for name in cells.column_names}, table, release.node, hierarchies
    )
    assert release.cell_loss is not None
    recomputed = generalisation_loss(cells, scales, table.n_rows)
    same = recomputed is not None and np.isclose(recomputed, release.cell_loss.mean(), rtol=1e-9, atol=1e-12)
    centred = recomputed == 0 and release.cell_loss.any()  # single values, of which something is lost, however little
    return scales if same and not centred else None


def scales_of_cells(
    shown: Mapping[str, list[str]],
    table: Table,
    node: Mapping[str, int] | None,
    hierarchies: Mapping[str, Hierarchy],
) -> dict[str, Scale]:
    """How the loss of some cells is computed.

    Args:
        shown: By quasi-identifier, its distinct published cells as text, in the order of their first rows.
        table: The input.
        node: Level of each quasi-identifier, where the whole column has one level.
        hierarchies: Those that the release was generalised by.
    """
    return {
        column.name: _scale(
            column, shown[column.name], hierarchies.get(column.name), None if node is None else node[column.name]
        )
        for column in table.quasi_identifiers
    }


def _scale(column: Column, shown: list[str], hierarchy: Hierarchy | None, level: int | None) -> Scale:
    kinds = {type(parse(cell)) for cell in shown}
    labels: dict[str, int] = {}
    if hierarchy is not None:
        levels = range(hierarchy.height + 1) if level is None else [level]
        leaves = {
            label: int(count)
            for each in levels
            for label, count in zip(hierarchy.labels[each], hierarchy.leaf_counts(each), strict=True)
        }
        least = 2 if hierarchy.bins_of(column) is None else 1  # of a bin nothing is lost, though it is an interval
        labels = {cell: leaves[cell] for cell in shown if leaves.get(cell, 0) >= least and cell != SUPPRESSED}
    spanned = Interval in kinds and column.is_ordered
    return Scale(
        span=float(np.ptp(column.numbers)) if spanned else None,
        order=list(column.texts) if spanned and column.kind == "ordinal" else None,
        total=len(hierarchy.leaves) if labels and hierarchy else column.size if Members in kinds else None,
        labels=labels,
    )


def labels_of(release: Release, table: Table, hierarchies: Mapping[str, Hierarchy]) -> Labels | None:
    """What the published labels mean, which is not for publication; None where all cells show that themselves.

    Args:
        release: What an algorithm returned.
        table: Its input.
        hierarchies: Those that the release was generalised by.
    """
    if release.classes is None:
        return None
    cells = text_table(release.table.select(list(table.roles.quasi_identifiers)))
    shown = {name: cells.column(name).unique().to_pylist() for name in cells.column_names}
    return labels_of_cells(shown, table, release.node, hierarchies)


def labels_of_cells(
    shown: Mapping[str, list[str]],
    table: Table,
    node: Mapping[str, int] | None,
    hierarchies: Mapping[str, Hierarchy],
) -> Labels | None:
    """`labels_of`, with arguments as of `scales_of_cells`."""
    found: dict[str, dict[str, list[str]]] = {}
    for column in table.quasi_identifiers:
        hierarchy = hierarchies.get(column.name)
        if hierarchy is None:
            continue
        opaque = {cell for cell in shown[column.name] if not _explains_itself(cell, column)}
        levels = range(1, hierarchy.height + 1) if node is None else [node[column.name]]
        values: dict[str, list[str]] = {}
        for level in levels if opaque else ():
            labels = hierarchy.labels[level]
            for value, code in zip(column.texts, hierarchy.codes(column, level).tolist(), strict=True):
                if level > 0 and labels[code] in opaque:
                    values.setdefault(labels[code], []).append(value)
        if values:
            found[column.name] = values
    return Labels(salt=Randomness.from_os().bytes(16).hex(), columns=found) if found else None


def _explains_itself(cell: str, column: Column) -> bool:
    """Whether a cell needs no explanation; a value that is one may be the label of others as well."""
    return cell == SUPPRESSED or (column.kind in ("numeric", "date") and isinstance(parse(cell), Interval))


def moments_of(release: Release) -> GroupMoments | None:
    """The moments of condensed groups, which are not for publication; None where records were not condensed."""
    details: Mapping[str, Any] = release.details
    if release.rows is not None or "products" not in details:
        return None
    return GroupMoments(
        salt=Randomness.from_os().bytes(16).hex(),
        origins=_listed(details["origins"]),
        units=_listed(details["units"]),
        sums=_listed(details["sums"]),
        products=_listed(details["products"]),
    )


def groups_of(release: Release, moments: str) -> Groups:
    """What is published of condensed groups.

    Args:
        release: Of condensed records.
        moments: SHA-256 of the file that holds their moments.
    """
    details: Mapping[str, Any] = release.details
    return Groups(
        columns=_listed(details["columns"]), sizes=_listed(details["sizes"]), factor=details["factor"], moments=moments
    )


def replacement_of(release: Release, table: Table) -> Replacement | None:
    """The parameters of identity replacement; None where identities were not replaced."""
    details: Mapping[str, Any] = release.details
    if "ranges" not in details or release.rows is None:
        return None
    least, greatest = details["alpha"]
    given = table.n_rows + table.dropped
    # Positions put each row beside its original. Of sorted rows they would only reveal which records are missing.
    in_order = details.get("row_order") != "sorted"
    return Replacement(
        **{name: dict(details[name]) for name in ("ranges", "scales", "influences", "weights")},
        alpha_min=least,
        alpha_max=greatest,
        ch_max=details["ch_max"],
        beta=details["beta"],
        omitted=np.setdiff1d(np.arange(given), table.kept[release.rows]).tolist() if in_order else None,
        unmet=0 if details["exhausted"] == "suppress" else int(release.statistics["exhausted"]),
    )


def _listed(values: Any) -> list[Any]:
    return np.asarray(values).tolist() if not isinstance(values, tuple) else list(values)
