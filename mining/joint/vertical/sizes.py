"""What the engines of joint vertical mining send and compute, from public sizes alone, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, get_args

from crypto.primitives.ring_matrix import BLOCK_WORDS
from crypto.protocols.paillier.costs import exact_products_traffic, exact_products_work
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.costs import (
    dealt_products_traffic,
    pair_products_traffic,
    pair_products_work,
    replicated_elements,
    replicated_flops,
    spanning_counts_traffic,
    spanning_products_traffic,
    spanning_products_work,
)
from crypto.protocols.products.replicated_counts import STREAMS
from crypto.protocols.products.shared_products import word_for
from link.traffic import Traffic
from mining.joint.vertical.engines import paillier
from mining.joint.vertical.engines.interface import Naming, by_pair, numbers_of, of_several
from mining.joint.vertical.parameters import (
    ChosenEngine,
    Mode,
    VerticalMining,
    dealt_by_coordinator,
    holders_of,
    in_job_order,
)

ENGINES: Final[tuple[ChosenEngine, ...]] = get_args(ChosenEngine)
TYPICAL_DENSITY: Final = 0.2


@dataclass(frozen=True)
class EngineSpeed:
    """Seconds of one operation on one core.

    Attributes:
        transfer_s: A random oblivious transfer, the sender's half and the receiver's.
        correction_s: A byte of a correlation that rides on a transfer, both halves.
        encryption_s: An encryption of zero by the key's owner, 3072 bits, which assumes nothing.
        decryption_s: A decryption.
        multiplication_s: A multiplication modulo n².
        residue_s: A uniform n-th residue.
        flop_s: A multiplication or addition of floats in a matrix product.
        element_s: An element that three parties share or multiply, at one of them.
    """

    transfer_s: float = 2.2e-7
    correction_s: float = 4.5e-9
    encryption_s: float = 1.2e-3
    decryption_s: float = 7.9e-3
    multiplication_s: float = 8.9e-6
    residue_s: float = 2.8e-2
    flop_s: float = 6e-11
    element_s: float = 4e-8

    @classmethod
    def by_transfer(cls, transfer_s: float) -> EngineSpeed:
        """A machine on which a transfer takes so long, and all else is in proportion to the machine of the defaults."""
        usual = cls()
        times = transfer_s / usual.transfer_s
        return cls(**{name: getattr(usual, name) * times for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class EngineCost:
    """What one engine comes to.

    Attributes:
        engine: Its name.
        bytes_sent: Of all parties.
        rounds: The longest chain of messages that wait for each other, at most.
        seconds: Processor time of all parties, one core.
    """

    engine: ChosenEngine
    bytes_sent: int
    rounds: int
    seconds: float

    def over(self, bytes_per_s: float, latency_s: float) -> float:
        """Seconds where all of it goes over one link, message after message, and nothing is computed meanwhile."""
        return self.seconds + self.bytes_sent / bytes_per_s + self.rounds * latency_s


def engine_costs(
    task: VerticalMining,
    parties: Sequence[str],
    rows: int,
    columns: Mapping[str, int],
    *,
    speed: EngineSpeed | None = None,
    density: float = TYPICAL_DENSITY,
    engines: Sequence[ChosenEngine] = ENGINES,
) -> list[EngineCost]:
    """What every engine would come to for all candidates of two items; agreements not among it.

    Whether the job allows an engine is not asked: `replicated` needs a helper, or that three parties be trusted.

    Args:
        task: The public parameters; its engine does not matter.
        parties: Of the job.
        rows: Positions after the alignment.
        columns: By party, how many frequent items it has.
        speed: Of the machines.
        density: Share of the rows in which an item occurs.
        engines: Those to be compared.
    """
    itemsets, speed = pairs_of_items(parties, columns, task.mode), speed or EngineSpeed()
    costs = []
    for engine in engines:
        traffic = Traffic(parties)
        addends_traffic(traffic, task, engine, rows=rows, itemsets=itemsets)
        seconds = addends_seconds(engine, parties, rows, itemsets, speed, density)
        costs.append(EngineCost(engine, sum(map(traffic.bytes_sent, parties)), traffic.rounds, seconds))
    return costs


def pairs_of_items(parties: Sequence[str], columns: Mapping[str, int], mode: Mode) -> list[Itemset]:
    """The candidates of two items of which several parties have a part, as an engine gets them.

    After a union every party takes part in all of them, by its presence where it has no item; and those of one party's
    items are among them.
    """
    across: list[Itemset] = [
        {first: i, second: j}
        for first, second in combinations(parties, 2)
        for i in range(columns[first])
        for j in range(columns[second])
    ]
    if mode == "intersection":
        return across
    presence = dict(columns)  # numbered after the items
    own: list[Itemset] = [
        {party: columns[party] + 1 + number}
        for party in parties
        for number in range(columns[party] * (columns[party] - 1) // 2)
    ]
    return [{**presence, **itemset} for itemset in (*across, *own)]


# -- one call of an engine ---------------------------------------------------------------------------------------------
def addends_traffic(
    traffic: Traffic,
    task: VerticalMining,
    engine: ChosenEngine,
    *,
    rows: int,
    itemsets: Sequence[Itemset],
    names: Naming | None = None,
    encrypted: paillier.Encrypted | None = None,
) -> None:
    """Enters `Engine.addends`: all that is sent, and at least as many rounds.

    Args:
        traffic: Where it is entered.
        task: The public parameters.
        engine: Which one.
        rows: As given to the engine.
        itemsets: As given to the engine.
        names: As given to the engine.
        encrypted: Of the calls before this one; it takes note of this one. None: there are none with names.
    """
    parties = traffic.parties
    if not itemsets or not rows:
        return
    if dealt_by_coordinator(engine, parties):
        first, second = parties
        dealt_products_traffic(traffic, (first, second), rows=rows, pairs=numbers_of(itemsets, (first, second)))
        return
    if engine == "replicated":
        holders = holders_of(task, parties)
        spanning_counts_traffic(traffic, holders, holders[:2], rows=rows, itemsets=itemsets)
        return
    begun, ends = traffic.rounds, [traffic.rounds]
    for pair, chosen in by_pair(itemsets, parties).items():
        traffic.rounds = begun  # pairs work beside one another
        pairs = numbers_of([itemsets[place] for place in chosen], pair)
        if engine == "ot":
            pair_products_traffic(traffic, pair, rows=rows, pairs=pairs)
        else:
            for block in paillier.row_blocks(rows):
                roles = (encrypted or paillier.Encrypted()).roles(pair, block, pairs, names)
                exact_products_traffic(
                    traffic, roles.holder, roles.evaluator, kept=roles.kept, pairs=roles.pairs, names=roles.names
                )
        ends.append(traffic.rounds)
    traffic.rounds = max(ends)
    if many := [itemsets[place] for place in of_several(itemsets)]:
        spanning_products_traffic(traffic, in_job_order(parties, task.compute), rows=rows, itemsets=many)


def addends_seconds(
    engine: ChosenEngine,
    parties: Sequence[str],
    rows: int,
    itemsets: Sequence[Itemset],
    speed: EngineSpeed,
    density: float = TYPICAL_DENSITY,
    names: Naming | None = None,
    encrypted: paillier.Encrypted | None = None,
) -> float:
    """Processor time of `Engine.addends`, all parties together; arguments as above."""
    total = 0.0
    if dealt_by_coordinator(engine, parties):
        first, second = parties
        used = [len(set(side)) for side in numbers_of(itemsets, (first, second)).T.tolist()]
        return _MATRIX_FLOPS * 3 * rows * used[0] * used[1] * speed.flop_s  # both holders, and the dealer
    if engine == "replicated":
        of_each = replicated_flops(rows, itemsets, parties) * speed.flop_s
        return 3 * (of_each + replicated_elements(rows, itemsets, parties) * speed.element_s)
    for pair, chosen in by_pair(itemsets, parties).items():
        pairs = numbers_of([itemsets[place] for place in chosen], pair)
        if engine == "ot":
            work = pair_products_work(rows, pairs)
            total += work.transfers * speed.transfer_s + work.words * speed.correction_s
            continue
        for block in paillier.row_blocks(rows):
            roles = (encrypted or paillier.Encrypted()).roles(pair, block, pairs, names)
            part = exact_products_work(roles.kept, roles.pairs, roles.names, density)
            total += part.encryptions * speed.encryption_s + part.decryptions * speed.decryption_s
            total += part.multiplications * speed.multiplication_s + part.residues * speed.residue_s
            total += part.transfers * (speed.transfer_s + _COUNT_BYTES * speed.correction_s)
    many = [itemsets[place] for place in of_several(itemsets)]
    word_bytes = word_for(rows)().itemsize if many else 0
    for several in spanning_products_work(rows, many, parties).values():
        total += several.transfers * speed.transfer_s + several.words * word_bytes * speed.correction_s
    return total


def working_bytes(engine: ChosenEngine, moved: int) -> int:
    """Memory of a party, about, for what an engine works on at a time.

    Args:
        engine: Its name.
        moved: Bytes that the party sends and gets. Ciphertexts are kept until all are used; all else goes in pieces.
    """
    most = {"paillier": moved, "ot": _TRANSFER_BYTES, "replicated": _BLOCK_BYTES}
    return min(moved, most[engine])


_TRANSFER_BYTES: Final = 100 << 20  # see `vector_transfers.WINDOW`
_BLOCK_BYTES: Final = 3 * STREAMS * BLOCK_WORDS * 4  # a block's columns: own, sent and received
_COUNT_BYTES: Final = 8  # of a correlation that makes a count by encryption exact
_MATRIX_FLOPS: Final = 2 * 3  # multiplications and additions a term, in limbs
