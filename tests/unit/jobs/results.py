"""Results made by hand, for tests of what is done with them."""

from __future__ import annotations

from pathlib import Path

from jobs.findings import Receipt, Result
from jobs.spec import JobSpec
from link.costs import Costs
from mining.miner import frequent_itemsets
from mining.transactions import Transactions

ROWS = [["a", "b", "<i>"], ["a", "b"], ["a"], ["b", "<i>"]]


def made(*, rules: bool = False, elsewhere: bool = False, min_count: int = 1) -> Result:
    """A result over `ROWS`."""
    contents = {
        "job": {
            "name": "<b>weekly</b>",
            "task": "rules" if rules else "itemsets",
            "parties": ["north", "south"],
            "dataset": "baskets",
            "recipients": ["north"] if elsewhere else ["coordinator"],
        },
        "itemsets": {"min_support": min_count},
    }
    if rules:
        contents["rules"] = {"min_confidence": "0.5"}
    parties = {name: Costs(10, 20, 3, 0.25) for name in ("north", "south")}
    return Result(
        spec=JobSpec.of(contents, "the test", Path()),
        job_id=bytes(32),
        session_id=bytes(range(32)),
        n_rows=len(ROWS),
        strategy="level-wise",
        parties=parties,
        receipts={name: Receipt(b"release", b"signature", b"PEM", ("other",)) for name in parties},
        found=None if elsewhere else frequent_itemsets(Transactions.from_rows(ROWS), min_count).canonical(),
    )
