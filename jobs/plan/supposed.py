"""What a job may cost where nothing that its parties publish says it: an order of magnitude, with what is supposed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from jobs.kinds.registry import kind_of
from jobs.plan.estimate import estimate
from jobs.plan.plan import Supposed
from jobs.plan.predicted import predicted, sizes_message, sizes_of
from jobs.spec.job import JobSpec
from mining.public_sizes import SUPPORTS, WHOLE, Frequent, PublicSizes
from protos.v1.plan_pb2 import PartyEstimate

_ROWS: Final = 10_000
_ITEMS: Final = 100  # that are frequent
_COLUMN_ITEMS: Final = 20  # of a party over columns, where as many pairs are tried as there are


def supposed(spec: JobSpec, published: Mapping[str, PartyEstimate], latency_s: float) -> Supposed | None:
    """The figures of a job whose parties have sizes that many have, where they publish none.

    None of a job whose cost depends on more than such sizes.

    Args:
        spec: The job.
        published: What each of its parties has published.
        latency_s: Seconds that a message is expected to take from party to party.

    Raises:
        ConfigurationError: The job cannot run with such parties.
    """
    hidden = not any(sizes_of(published[name].sizes).rows for name in spec.job.parties)
    rows = spec.plan.rows or _ROWS
    items = (spec.plan.items or _COLUMN_ITEMS) if spec.is_vertical else _ITEMS
    taken = [f"{rows:,} rows"] * hidden + [f"{items:,} frequent items"] * _mines(spec)
    if not taken:
        return None
    if spec.is_vertical:
        job, guessed = _of_columns(spec, items, rows if hidden else None), dict(published)
    else:
        job, guessed = spec, _of_rows(spec, published, rows if hidden else None)
    plan = estimate(job, predicted(job, guessed, "likely"), latency_s, compare=False)
    figures = plan.middle if plan.is_least else (plan.bytes_sent, plan.seconds)
    if figures is None:
        return None
    rough = ", very roughly" * plan.is_least
    return Supposed(bytes_sent=figures[0], seconds=figures[1], condition=f"if each has {', '.join(taken)}{rough}")


def _of_columns(spec: JobSpec, items: int, rows: int | None) -> JobSpec:
    """The job with sizes as its owner may state them, and with the engine that it takes without that."""
    sizes = {"items": items} if rows is None else {"items": items, "rows": rows}
    changes: dict[str, object] = {"plan": spec.plan.model_copy(update=sizes)}
    if spec.itemsets_ is not None:
        changes["itemsets_"] = spec.itemsets_.model_copy(update={"engine": kind_of(spec).engine(spec)})
    return spec.model_copy(update=changes)


def _of_rows(spec: JobSpec, published: Mapping[str, PartyEstimate], rows: int | None) -> dict[str, PartyEstimate]:
    """What parties publish, with so many rows, and with items where they publish none."""
    found = dict[str, PartyEstimate]()
    for name in spec.job.parties:
        sizes = sizes_of(published[name].sizes)
        n_rows = rows or sizes.rows
        given = PublicSizes(n_rows, sizes.items, sizes.frequent or _frequent(spec, n_rows))
        found[name] = PartyEstimate()
        found[name].CopyFrom(published[name])
        found[name].sizes.CopyFrom(sizes_message(given))
    return found


def _mines(spec: JobSpec) -> bool:
    return spec.itemsets_ is not None and spec.itemsets.min_support_ is not None


def _frequent(spec: JobSpec, rows: int | None) -> Frequent:
    """So many items at the published support that is nearest to that of the job."""
    if not _mines(spec) or rows is None:
        return ()
    support = spec.itemsets.min_support
    share = Fraction(support) if not isinstance(support, int) else Fraction(min(support, rows), rows)
    nearest = min(SUPPORTS, key=lambda each: max(share * WHOLE / each, each / (share * WHOLE)))
    return ((nearest, (_ITEMS,)),)
