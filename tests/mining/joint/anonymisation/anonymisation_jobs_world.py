"""Jobs that anonymise, over the rows of `anonymisation_world`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.files import rows_of
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from tests.mining.joint.anonymisation.anonymisation_world import ILLS, PARTIES, Cells, hierarchies, whole

RELEASED = (
    '{ age = ["quasi_identifiers"], town = ["quasi_identifiers"], sex = ["quasi_identifiers"], ill = ["sensitive"], '
    'note = ["insensitive"] }'
)
"""The columns of these jobs, as a policy allows them."""


def job(parties: Sequence[str] = PARTIES[:3], *, recipients: Sequence[str] = ("all",), **changes: Any) -> JobSpec:
    """A job; `changes` are of its own table, or of others by their names."""
    others = {name: changes.pop(name) for name in ("union", "trust", "privacy") if name in changes}
    contents: dict[str, Any] = {
        "job": {
            "name": "test",
            "task": "anonymize",
            "parties": list(parties),
            "dataset": "people",
            "recipients": list(recipients),
        },
        "anonymize": {
            "quasi_identifiers": ["age", "town", "sex"],
            "sensitive": ["ill"],
            "insensitive": ["note"],
            "insider_k": 1,
            "model": {"k": 3},
            "columns": {"age": {"kind": "numeric"}, "ill": {"values": list(ILLS)}, "note": {"most_bytes": 6}},
            "hierarchies": {name: list(map(list, rows_of(each))) for name, each in hierarchies().items()},
            **changes,
        },
        **others,
    }
    if "note" in contents["anonymize"]["insensitive"]:  # each row of these has its own
        contents["anonymize"].setdefault("allow_unique", ["note"])
    return job_of(contents, "the test", Path())


def certified(folder: Path, spec: JobSpec, cells: Cells) -> dict[str, Any]:
    """What the certificate of a job with `max_suppression = 0.1` tells; its loss is that of the pooled release."""
    told: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    pooled = optimal(whole(cells), hierarchies(), joint_anonymisation(spec).requirements, max_suppression="0.1")
    assert pooled.node == told["node"]
    assert pooled.cell_loss is not None
    assert told["metrics"]["gcp"] == pytest.approx(float(pooled.cell_loss.mean()), rel=1e-12)
    assert told["suppressed"] == len(pooled.suppressed)
    assert told["classes"] == pooled.n_classes
    return told
