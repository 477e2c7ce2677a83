"""Results made by hand, for tests of what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.results.record import Receipt
from jobs.results.result import Result
from link.costs import Costs
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.miner import frequent_itemsets
from mining.rules.association import association_rules
from protos.v1.control_pb2 import Approval, Proposal, Release, SignedApproval, SignedProposal

ROWS = [["a", "b", "<i>"], ["a", "b"], ["a"], ["b", "<i>"]]
PARTIES = ("north", "south")


def supports(result: Result) -> dict[frozenset[str], int]:
    """By itemset, of a result that has found some."""
    assert result.finding is not None
    return {frozenset(items): count for items, count in result.finding.itemsets}


def made(
    *,
    rules: bool = False,
    elsewhere: bool = False,
    min_count: int = 1,
    rows: Sequence[Sequence[str]] = ROWS,
    name: str = "<b>weekly</b>",
    min_confidence: str = "0.5",
    counted: bool = True,
    **more: Any,
) -> Result:
    """A result over `rows`, without supports where it is not to be `counted`; `more` goes into the `Result`."""
    contents = {
        "job": {
            "name": name,
            "task": "rules" if rules else "itemsets",
            "parties": list(PARTIES),
            "dataset": "baskets",
            "recipients": ["north"] if elsewhere else ["coordinator"],
        },
        "itemsets": {"min_support": min_count, "disclose": "supports" if counted else "frequent"},
    }
    if rules:
        contents["rules"] = {"min_confidence": min_confidence}
    found = frequent_itemsets(Transactions.from_rows(rows), min_count).canonical()
    decided = None
    if not counted:
        of_supports = association_rules(found, Decimal(min_confidence))
        found = uncounted(found)
        decided = replace(of_supports, itemsets=found) if rules else None
    parties = {party: Costs(10, 20, 3, 0.25) for party in PARTIES}
    return Result(
        spec=job_of(contents, "the test", Path()),
        job_id=bytes(32),
        session_id=bytes(range(32)),
        n_rows=len(rows),
        strategy="level-wise",
        parties=parties,
        receipts={party: _receipt(party) for party in PARTIES},
        finding=None if elsewhere else FoundItemsets(found, decided),
        **more,
    )


def uncounted(itemsets: Itemsets) -> Itemsets:
    """The same itemsets, canonical, as they are where no support is disclosed."""
    ordered = itemsets.canonical()
    levels = [(sets, np.zeros(len(sets), np.int64)) for sets, _ in ordered.levels]
    return Itemsets(ordered.items, levels, ordered.n_rows, counted=False)


def _receipt(party: str) -> Receipt:
    peers = tuple(peer for peer in PARTIES if peer != party)
    release = Release(party=party, result_digest=bytes([7] * 32), receipts_from=peers)
    return Receipt(release.SerializeToString(), b"signature", b"PEM", peers)


def consents(by: str = "policy") -> dict[str, Any]:
    """A signed proposal and the approval of each party, for `made`."""
    proposal = Proposal(spec=b"{}", nonce=bytes(16), expiry=1_800_000_000).SerializeToString()
    return {
        "proposal": SignedProposal(proposal=proposal, signature=b"signature", certificate=b"PEM"),
        "approvals": {party: _approval(party, by) for party in PARTIES},
    }


def _approval(party: str, by: str) -> SignedApproval:
    approval = Approval(job_id=bytes(32), party=party, coordinator="analyst", decided=1_790_000_000, by=by)
    return SignedApproval(approval=approval.SerializeToString(), signature=b"signature", certificate=b"PEM")


def plan() -> Plan:
    """A plan that expected other costs than those of `made`."""
    party = {"rows_public": "rounded", "n_rows": 2, "bytes_sent": 40, "bytes_received": 10, "seconds": 0.5}
    return Plan.from_data(
        {
            "job": "weekly",
            "spec_digest": "0" * 64,
            "n_rows": 4,
            "strategy": "level-wise",
            "rounds": 3,
            "seconds": 0.5,
            "parties": {name: {**party, "memory_bytes": 1} for name in PARTIES},
            "batches": [],
            "disclosure": [],
            "prose": [],
            "assumptions": ["the <parties> are idle"],
        }
    )
