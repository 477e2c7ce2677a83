"""Answers of parties made by hand, for tests of what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.loading import job_of
from jobs.plan.answer import Answer, ItemsetSizes, SetSize
from jobs.plan.predicted import sizes_message
from jobs.spec.job import JobSpec
from mining.candidates import join
from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets
from mining.public_sizes import NOTHING, PublicSizes
from protos.v1.plan_pb2 import PartyEstimate, Speed

PARTIES = ("north", "south", "east")
SPEED = Speed(
    multiply_s=4e-5,
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
    return job_of(contents, "the test", Path())


def answer(
    party: str,
    n_rows: int | None = 1000,
    *,
    candidates: tuple[int, ...] = (20, 190, 12),
    frequent: tuple[int, ...] = (20, 30, 5),
    items: int = 22,
) -> Answer:
    """A party that would find this; of one with None rows nothing is known."""
    held = SetSize(items, 1, 0.1)
    sizes = ItemsetSizes(
        candidates=candidates,
        frequent=frequent,
        items=held,
        held=held,
        rules=(65, 10),
        itemsets=held,
        closure=held,
        levels=(held, held),
    )
    return Answer(party, SPEED, 800, n_rows, None if n_rows is None else sizes)


def answers(**rows: int | None) -> dict[str, Answer]:
    """Answers of all parties; 1,000 rows where nothing is said."""
    return {party: answer(party, rows.get(party, 1000)) for party in PARTIES}


def slower(answer: Answer, **factors: float) -> Answer:
    """The party with some operations that take so many times as long."""
    speed = Speed()
    speed.CopyFrom(answer.speed)
    for name, factor in factors.items():
        setattr(speed, name, factor * getattr(speed, name))
    return replace(answer, speed=speed)


def sizes_of(data: Transactions, min_count: int, max_length: int | None = None) -> ItemsetSizes:
    """What is found in these rows, to the item: with which a plan has nothing to guess but what is new to others."""
    found = frequent_itemsets(data, min_count, max_length=max_length)
    frequent = [len(sets) for sets, _ in found.levels]
    candidates = [len(found.items), *(len(join(sets, 1 << 24)) for sets, _ in found.levels)]
    items = SetSize(len(found.items), 1, 0.1)
    return ItemsetSizes(
        candidates=tuple(number for number in candidates[:max_length] if number), frequent=tuple(frequent), items=items
    )


def told(
    party: str, sizes: PublicSizes = NOTHING, *, speed: Speed = SPEED, certificate_bytes: int = 800
) -> PartyEstimate:
    """What a party answers over the wire that publishes this."""
    return PartyEstimate(party=party, sizes=sizes_message(sizes), speed=speed, certificate_bytes=certificate_bytes)
