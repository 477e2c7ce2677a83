"""`report.html` of a release: columns before and after, risk, loss, the search, and the certificate.

The page is static: nothing is loaded and no script runs. It shows figures of the original, so it is for inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.grouping import Histograms, group
from anonymize.release import Release
from anonymize.risk.background import AttributeDisclosure, attribute_disclosure
from anonymize.risk.reidentification import prosecutor
from anonymize.tables import Table
from anonymize.utility.summary import counted_sizes
from jobs.anonymization.distributions import class_sizes, distributions
from jobs.anonymization.inputs import Inputs
from jobs.anonymization.plots import paired_bars
from jobs.anonymization.spec import RANDOM
from jobs.anonymization.wording import ALWAYS, WORK, protections
from jobs.report import text
from jobs.report.page import page
from link.version import software_version

_MEANINGS: Final = {
    "gcp": ("GCP", "mean share of its hierarchy or range that a cell covers, 1 where suppressed"),
    "prec": ("Prec", "1 less the mean height of generalisation; 1 is as it was"),
    "dm": ("DM", "discernibility: squared class sizes, and n for each suppressed row"),
    "c_avg": ("C_avg", "mean class size by k; 1 is the best"),
    "aecs": ("AECS", "mean class size"),
}
_NODES: Final = {"minimal_nodes": "Minimal nodes", "path": "Nodes passed", "rounds": "Nodes of the rounds"}
_MOST_NODES: Final = 20


def report(inputs: Inputs, release: Release, certificate: Certificate, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        inputs: What was anonymised.
        release: The outcome.
        certificate: Its certificate.
        written: The time that it names as its own; now, if None.
    """
    return page("anonymization.html.j2", _content(inputs, release, certificate, written or datetime.now(UTC)), None, ())


def _content(inputs: Inputs, release: Release, certificate: Certificate, written: datetime) -> dict[str, Any]:
    table, spec = inputs.table, inputs.spec
    models = inputs.requirements.models if inputs.requirements else ()
    before = np.bincount(group(table.quasi_codes)[0]) if table.quasi_identifiers else np.zeros(0, np.int64)
    after = counted_sizes(release)
    has_classes = bool(after.size and before.size)
    heights = certificate.heights or {}
    return {
        "certificate": certificate,
        "figures": list(_figures(certificate, after)),
        "seeded": spec.seed is not None and spec.algorithm in RANDOM,
        "dropped": table.dropped,
        "protections": protections(models, spec.algorithm, spec.model.k),
        "always": ALWAYS,
        "warnings": inputs.warnings,
        "columns": [(each, paired_bars(each.bars)) for each in distributions(table, release, inputs.hierarchies)],
        "levels": {name: (level, heights[name]) for name, level in (certificate.node or {}).items()},
        "risks": _risks(before, after) if has_classes else [],
        "sizes": paired_bars(class_sizes(before, after)) if has_classes else None,
        "disclosures": list(_disclosures(table, release)) if has_classes else [],
        "losses": list(_losses(certificate)),
        "moments": list(_moments(table, release)),
        "tables": _tables(certificate, release),
        "digests": _digests(certificate),
        "written": text.moment(written),
        "software": software_version(),
    }


def _figures(certificate: Certificate, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[str, str]]:
    yield "rows", text.number(certificate.rows)
    yield "published", text.number(certificate.published)
    yield "suppressed", text.number(certificate.suppressed)
    if certificate.classes is not None:
        yield "classes", text.number(certificate.classes)
    if sizes.size:
        yield "rows of the smallest class", text.number(int(sizes.min()))
        yield "highest prosecutor risk", text.percent(1 / int(sizes.min()))
    if "gcp" in certificate.metrics:
        yield "GCP", f"{certificate.metrics['gcp']:.4f}"


def _risks(before: Any, after: Any) -> list[tuple[str, float, float]]:
    original, published = prosecutor(before), prosecutor(after)
    named = {
        "highest": "highest: of the smallest class",
        "average": "mean over rows; also the marketer's share of right links",
        "above": f"share of rows above {text.percent(original.threshold)}",
        "unique": "share of rows alone in their class",
    }
    return [(words, getattr(original, name), getattr(published, name)) for name, words in named.items()]


def _disclosures(table: Table, release: Release) -> Iterator[tuple[str, AttributeDisclosure]]:
    """How alike the sensitive values of classes are; suppressed rows are no class."""
    assert release.rows is not None
    assert release.classes is not None
    shown = release.classes >= 0
    shown &= ~np.isin(release.rows, release.suppressed)
    labels, classes = group([(release.classes[shown], release.n_classes)])
    columns = [replace(column, codes=column.codes[release.rows[shown]]) for column in table.sensitive]
    for name, counts in Histograms.of(labels, classes, columns).sensitive.items():
        yield name, attribute_disclosure(counts)


def _losses(certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    for name, (label, meaning) in _MEANINGS.items():
        if name in certificate.metrics:
            value = certificate.metrics[name]
            yield label, text.number(value) if name == "dm" else f"{value:.4f}", meaning


def _moments(table: Table, release: Release) -> Iterator[tuple[str, float, float, float, float]]:
    """Mean and deviation of numeric columns that are published as numbers."""
    for name, column in table.columns.items():
        if name in table.roles.identifiers or name in table.roles.insensitive or column.kind != "numeric":
            continue
        if name not in release.table.column_names:
            continue
        cells = release.table.column(name).drop_null()
        if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)) or not len(cells):
            continue
        original, published = column.numbers[column.codes], cells.to_numpy()
        yield name, float(original.mean()), float(published.mean()), float(original.std()), float(published.std())


def _tables(certificate: Certificate, release: Release) -> list[tuple[str, list[tuple[str, str]]]]:
    asked = [(name, _words(value)) for name, value in certificate.parameters.items() if name != "seeded"]
    work = [(WORK.get(name, name), text.number(value)) for name, value in certificate.statistics.items()]
    levels = [
        (name, f"level {level} of {(certificate.heights or {}).get(name, level)}")
        for name, level in (certificate.node or {}).items()
    ]
    named = [("What was asked", asked), ("The work that was done", work), ("Levels of generalisation", levels)]
    named += [(title, _nodes(release.details[key])) for key, title in _NODES.items() if key in release.details]
    return [(name, rows) for name, rows in named if rows]


def _nodes(listed: object) -> list[tuple[str, str]]:
    """The first of some nodes; rounds of local recoding have their rows beside them."""
    assert isinstance(listed, list)
    rows = []
    for number, node in enumerate(listed[:_MOST_NODES], 1):
        levels, rows_shown = (node[0], f": {node[1]:,} rows") if isinstance(node[0], tuple) else (node, "")
        rows.append((str(number), f"({', '.join(map(str, levels))}){rows_shown}"))
    if len(listed) > _MOST_NODES:
        rows.append(("…", f"{len(listed):,} in all"))
    return rows


def _words(value: object) -> str:
    """A parameter in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return "; ".join(map(_words, value))
    return str(value)


def _digests(certificate: Certificate) -> list[tuple[str, str]]:
    hashes = certificate.hashes
    named = [(f"SHA-256 of {name}", digest) for name, digest in hashes.release.items()]
    named += [("SHA-256 of the input", hashes.input or "none")]
    named += [(f"SHA-256 of the hierarchy of {name}", digest) for name, digest in hashes.hierarchies.items()]
    named += [("SHA-256 of the configuration", hashes.configuration or "none")]
    return [*named, ("digest of the certificate", certificate.digest)]
