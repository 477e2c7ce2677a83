"""Level 1 without a public catalogue: every party names items of which it has enough, by its own noisy counts.

    1  each party truncates its records to M items and counts
    2  it adds noise of its own to the count of each item that it has, and names those that reach a public threshold: an
       item of one record alone does so with a probability of at most δ' for all items of that record together
    3  it opens these names to all parties                                                                     items

Rounds:     1. Output: the names, of all parties together.
Adversary:  semi-honest parties; each party's noise is its own, so no other party's counts for what its names reveal.
Leakage:    which items each party names, and so about which it has at least the threshold of. A record lies at one
            party, so the parties' choices spend its budget once (parallel composition).
Source:     Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin, "Differentially Private Set Union", ICML 2020.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from link.errors import ConfigurationError, MalformedMessage, shareable
from link.files.json_text import read_json
from link.session import Session
from mining.data.rows import Rows
from mining.joint.distributed.budget import Selection
from mining.joint.distributed.truncation import truncated_item_counts
from mining.joint.hybrid.openings import MAX_DOCUMENT, open_document, receive_document
from mining.joint.item_names import nameable
from mining.limits import MAX_ITEM_BYTES

LABEL: Final = "items"


async def named_items(
    session: Session, data: Rows, chosen: Selection, most: int, random: Randomness
) -> tuple[str, ...]:
    """The items that some party names, in ascending order of UTF-8 bytes.

    Args:
        session: A lane of its own.
        data: This party's rows.
        chosen: How each party chooses.
        most: How many items there may be.
        random: What this party's noise is drawn from.

    Raises:
        ConfigurationError: The parties name more.
        MalformedMessage: A peer opened something else than a list of names.
    """
    mine = await session.compute(own_choice, data, chosen, random)
    _check_number(len(mine), most)
    await open_document(session, LABEL, _packed(mine), len(mine), session.others)
    names = set(mine)
    for peer in session.others:
        packed = await receive_document(session, peer, LABEL, most_bytes=MAX_DOCUMENT, most=most)
        names.update(unpacked(peer, packed))
    _check_number(len(names), most)
    return tuple(sorted(names))


def own_choice(data: Rows, chosen: Selection, random: Randomness) -> tuple[str, ...]:
    """The items that one party names, in ascending order of UTF-8 bytes."""
    data = nameable(data)
    counts = truncated_item_counts(data, chosen.most)
    held = np.flatnonzero(counts)  # an item that no record counts to has no noise, lest its name reveal that it is here
    noise = DiscreteGaussian(chosen.variance).draw(len(held), random)
    named = held[counts[held] + noise >= chosen.threshold]
    return tuple(sorted(data.items[at] for at in named.tolist()))


def _check_number(named: int, most: int) -> None:
    if named > most:
        raise shareable(
            ConfigurationError(
                f"the parties name more than {most} items; name a catalogue as [itemsets] universe, or raise "
                "max_candidates"
            )
        )


def _packed(names: tuple[str, ...]) -> bytes:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()


def unpacked(peer: str, packed: bytes) -> tuple[str, ...]:
    """The names in what a peer opened, in ascending order and each once.

    Raises:
        MalformedMessage: It is not exactly what `_packed` gives for some names.
    """
    wrong = MalformedMessage(f"{peer} opened something else than a list of items; check that node", party=peer)
    try:
        names = read_json(packed)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise wrong
        if names != sorted(set(names)) or _packed(tuple(names)) != packed:
            raise wrong
        if any(len(name.encode()) > MAX_ITEM_BYTES for name in names):
            raise wrong
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        raise wrong from None
    return tuple(names)
