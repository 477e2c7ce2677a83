"""The plan of a model over columns: that of the alignment, with the memory of the codes of all columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.kinds.columns.plan import estimate as estimate_columns
from jobs.kinds.models.columns.run import strategy_of
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.plan.answer import Answer
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec
from mining.joint.models.aligned import code_bytes

_NOTABLE_BYTES: Final = 100 << 20
_ONLY_ROWS = (
    "The figures are those of the alignment. What it takes to learn the model comes on top and is not counted: it "
    "grows with the common rows and with the values, cuts and steps of the columns."
)


def estimate(
    spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool = True
) -> Plan:
    """As `jobs.kinds.kind.Kind.estimate`; codes are in memory, as if each party had all columns, in blocks as well."""
    aligned = estimate_columns(spec, answers, latency_s, *others, _ONLY_ROWS, compare=compare)
    columns = (aligned.n_rows or 0) * code_bytes(columns_of(model_parameters(spec)))
    parties = {
        name: party.model_copy(update={"memory_bytes": party.memory_bytes + columns})
        for name, party in aligned.parties.items()
    }
    said = list(aligned.assumptions)
    if columns >= _NOTABLE_BYTES:
        said.append(f"Codes of the model's columns take up to {columns / 1e9:.1f} GB of memory, in blocks as well.")
    strategy = f"{strategy_of(spec)}, {spec.alignment.mode}"
    return aligned.model_copy(update={"strategy": strategy, "is_least": True, "parties": parties, "assumptions": said})
