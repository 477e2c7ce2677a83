"""A node hides its sensitive rules in what it contributes to jobs, and says so in its audit log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jobs.kinds.packed_itemsets import unpack
from jobs.loading import job_of
from protos.v1 import control_pb2 as control
from tests.party.nodes import DATA, running

ROWS = {name: [["bread", "beer"]] * 20 + [["bread"], ["beer"], ["wine"]] * 5 for name in DATA}
HIDING = '[dataset.hiding]\nrules = ["bread -> beer"]\nmin_support = 0.1\n'


def test_hidden_rules_reach_no_job(tmp_path: Path) -> None:
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets",
            "parties": list(DATA),
            "dataset": "baskets",
            "recipients": ["all"],
        },
        "itemsets": {"min_support": 10},
    }
    first = next(iter(DATA))

    def hide(_: Any) -> None:
        file = tmp_path / f"{first}.toml"
        file.write_text(file.read_text().replace("[policy]", f"{HIDING}[policy]"))

    async def test() -> tuple[bytes, bytes]:
        async with running(tmp_path, data=ROWS, prepare=hide) as nodes:
            job_id, ends = await nodes.run(job_of(contents, "job.toml", Path()))
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
            _, packed = await nodes.clients[first].result(job_id)
            return job_id, packed

    job_id, packed = asyncio.run(test())
    found = dict(unpack(packed).itemsets.rows())
    # At the first node the pair is below a tenth of its 35 rows: in 3 of them at most.
    assert found["beer", "bread"] == (len(DATA) - 1) * 20 + 3
    told = [json.loads(line) for line in (tmp_path / "state" / first / "audit.log").read_text().splitlines()]
    (entry,) = [line["fields"] for line in told if line["event"] == "rules-hidden"]
    assert (entry["job"], entry["dataset"], entry["rules"]) == (job_id.hex(), "baskets", 1)
    assert "bread" not in json.dumps(told)
