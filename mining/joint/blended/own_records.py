"""A party's own records in blended mining: two halves of them, and what they answer to questions.

Records in blocks are put into halves, asked and perturbed where they lie; each block has a stream of its own, derived
from a key that the node draws for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.budget import float_below
from ldp.oracles.direct_encoding import DirectEncoding
from link.randomness import RandomStream
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.blended.estimate import Counts
from mining.joint.blended.parameters import Blending
from mining.partitioned.chosen import ChosenRows
from mining.partitioned.noise_key import NoiseKey
from mining.partitioned.random_groups import RandomGroups


def halves(data: Rows, random: RandomStream) -> tuple[Rows, Rows]:
    """A trusted party's records in two halves by chance, the second of `second_half` records."""
    second = second_half(data.n_rows)
    if isinstance(data, Transactions):
        first = np.ones(data.n_rows, bool)
        first[random.permutation(data.n_rows)[:second]] = False
        return data.chosen(first), data.chosen(~first)
    sizes = data.n_rows - second, second
    groups = RandomGroups.drawn(sizes, random)
    return ChosenRows(data, groups, 0, sizes[0]), ChosenRows(data, groups, 1, sizes[1])


def answers(data: Rows, head: tuple[str, ...], task: Blending, random: Randomness) -> Counts:
    """How many of one party's records say yes to each question, shape (d,).

    Each record is asked about one item of the head list, which chance alone chooses, and answers by itself.

    Args:
        data: The party's rows.
        head: The head list, at least one item.
        task: The public parameters.
        random: The source of randomness.
    """
    known = data.onto(head)
    if isinstance(known, Transactions):
        question = np.empty(known.n_rows, np.int64)
        question[random.permutation(known.n_rows)] = np.arange(known.n_rows) % len(head)
        return yes(known, question, response(task), random)
    groups = RandomGroups.drawn(asked(known.n_rows, len(head)).tolist(), random)
    return known.placed_total(Answers(groups, response(task), NoiseKey.drawn(random)))


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """How many rows of a block say yes to each question.

    Attributes:
        groups: Which row is asked which question.
        oracle: By which rows answer.
        key: Secret; each block's stream is derived from it.
    """

    groups: RandomGroups
    oracle: DirectEncoding
    key: NoiseKey = field(repr=False)

    def __call__(self, rows: Transactions, first: int) -> Counts:
        """Shape (d,)."""
        random = self.key.stream("block", first, rows.n_rows)
        return yes(rows, self.groups.of(first, rows.n_rows), self.oracle, random)


def yes(rows: Transactions, question: NDArray[np.int64], oracle: DirectEncoding, random: Randomness) -> Counts:
    """How many rows say yes to each question, shape (d,).

    Args:
        rows: Rows on the head list.
        question: Shape (n_rows,): what each is asked.
        oracle: By which they answer.
        random: The source of randomness.
    """
    holds = np.zeros(rows.n_rows, np.int64)
    if not len(holds):
        return np.zeros(rows.n_items, np.int64)
    numbers = rows.row_numbers()
    holds[numbers[rows.indices == question[numbers]]] = 1
    said = oracle.outcomes(oracle.privatise(holds, random))
    return np.bincount(question[said == 1], minlength=rows.n_items).astype(np.int64)


def response(task: Blending) -> DirectEncoding:
    """Randomised response of a record to its question: 1 for yes."""
    return DirectEncoding(2, float_below(task.epsilon))


def asked(records: int, questions: int) -> Counts:
    """How many of a party's records are asked each question."""
    return np.asarray((records + questions - 1 - np.arange(questions)) // questions, np.int64)


def second_half(records: int) -> int:
    """How many of a trusted party's records are in its second half."""
    return records - records // 2
