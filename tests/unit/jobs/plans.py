"""Answers of parties made by hand, for tests of what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crypto.protocols import joint_prf
from jobs.spec import JobSpec
from protos.v1.plan_pb2 import LocalSizes, PartyEstimate, SetSize, Speed

PARTIES = ("north", "south", "east")
SPEED = Speed(
    multiply_s=4e-5,
    embed_s=2e-5,
    byte_s=1e-9,
    frame_byte_s=2e-9,
    frame_s=1e-5,
    candidate_s=1e-6,
    row_s=1e-7,
    row_pairs_s=1e-6,
    transfer_s=1e-7,
)


def weekly(
    parties: tuple[str, ...] = PARTIES,
    *,
    bound: int | None = None,
    recipients: tuple[str, ...] = ("coordinator",),
    rules: dict[str, Any] | None = None,
    **itemsets: Any,
) -> JobSpec:
    """A job."""
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets" if rules is None else "rules",
            "parties": list(parties),
            "dataset": "baskets",
            "recipients": list(recipients),
        },
        "itemsets": {"min_support": "0.1", **itemsets},
        "union": {} if bound is None else {"bound": bound},
        **({} if rules is None else {"rules": rules}),
    }
    return JobSpec.of(contents, "the test", Path())


def answer(
    party: str,
    n_rows: int | None = 1000,
    *,
    candidates: tuple[int, ...] = (20, 190, 12),
    frequent: tuple[int, ...] = (20, 30, 5),
    items: int = 22,
) -> PartyEstimate:
    """What a party tells that has found this; one with None rows hides them."""
    told = PartyEstimate(
        party=party,
        rows_public="hidden" if n_rows is None else "exact",
        n_rows=n_rows,
        speed=SPEED,
        certificate_bytes=800,
    )
    if n_rows is not None:
        held = SetSize(elements=items, rung=max(items - 1, 0).bit_length(), blocks=1, novelty=0.1)
        told.sizes.CopyFrom(
            LocalSizes(
                candidates=candidates,
                frequent=frequent,
                complete=True,
                items=held,
                held=held,
                held_rung=joint_prf.rung(items),
                rules=[65, 10],
                mined=True,
                itemsets=held,
                closure=held,
                levels=[held, held],
            )
        )
    return told


def answers(**rows: int | None) -> dict[str, PartyEstimate]:
    """Answers of all parties; 1,000 rows where nothing is said."""
    return {party: answer(party, rows.get(party, 1000)) for party in PARTIES}
