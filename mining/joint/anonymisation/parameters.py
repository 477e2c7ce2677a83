"""The public parameters of joint anonymisation, and what comes out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Kind, number_of
from anonymize.fulldomain.lattice import Node
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from crypto.protocols.comparison.argmin import position_bits
from link.errors import InputDataError

Algorithm = Literal["optimal", "samarati", "mondrian"]
Origin = Literal["hidden", "shown"]
Disclose = Literal["verdicts", "node"]
Keys = Literal["none", "union"]
Role = Literal["sensitive", "insensitive"]

ORIGIN_COLUMN: Final = "origin"
"""The column that shows whose a row is, where a job lets that be seen."""

MOST_CELLS: Final = 1 << 20
"""Nodes with more possible classes are not looked at: each class costs a comparison, occupied or not."""

NODE_CELLS: Final = 10_000
"""Where only the chosen node is disclosed, nodes with more possible classes are left out, unless the job says more."""

MOST_NODES: Final = 1 << 18
"""Of a lattice that parties search together: a number is held for each, and compared."""

_LARGEST_LOSS: Final = 1 << 60  # of all cells together: a comparison takes 62 bits then


@dataclass(frozen=True)
class QuasiIdentifier:
    """A column that is generalised.

    Attributes:
        name: Of the column.
        kind: What its values are; numbers meet leaves of the same number, however written.
        hierarchy: Public. All values that may occur are leaves of it; those of an ordinal column stand in its order.

    Raises:
        InputDataError: Two leaves are one value of the kind, such as 30 and 30.0: it is not clear which is meant.
    """

    name: str
    kind: Kind
    hierarchy: Hierarchy

    def __post_init__(self) -> None:
        if self.kind != "numeric":
            return
        written = dict[float, str]()
        for leaf in self.hierarchy.leaves:
            try:
                other = written.setdefault(number_of(leaf), leaf)
            except ValueError:  # no number: an interval, or a leaf that no cell meets
                continue
            if other != leaf:
                raise InputDataError(
                    f'the hierarchy of "{self.name}" has two rows for one number, "{other}" and "{leaf}"; keep one'
                )

    @property
    def order(self) -> tuple[str, ...]:
        """All values of an ordinal column, lowest first; of any other none."""
        return self.hierarchy.leaves if self.kind == "ordinal" else ()


@dataclass(frozen=True)
class Carried:
    """A column that is published as it is.

    Attributes:
        name: Of the column.
        role: Sensitive, or neither that nor a quasi-identifier.
        kind: What its values are.
        values: All that may occur, in order; public. None: any text of `most_bytes` at most.
        most_bytes: Of a cell in UTF-8.
        may_be_unique: Whether it may distinguish most rows.
    """

    name: str
    role: Role
    kind: Kind
    values: tuple[str, ...] | None
    most_bytes: int
    may_be_unique: bool = False


@dataclass(frozen=True)
class JointAnonymisation:
    """What all parties agree on before they anonymise their rows together.

    Attributes:
        quasi_identifiers: In the order in which ties between nodes are broken.
        carried: The other columns of the release.
        requirements: What every class must meet in the union of all parties' rows.
        max_suppression: Share of all rows that may be left out.
        algorithm: `optimal`: the node of least loss. `samarati`: of the least height. `mondrian`: no node, but regions
            that are cut in two as long as both sides meet the requirements; hierarchies name and order values.
        insider_k: A party that takes its own rows away must be left with none, or with so many, in every class.
        insiders: The same of up to so many parties that put their rows together.
        k_site: No party has fewer rows in a class, but it may have none; None: it may have any number.
        origin: Whether the release shows whose a row is.
        compute: The two computing parties.
        learners: The parties that get the release.
        bound: The most rows that any party may have; None: the size class of the largest is disclosed.
        disclose: `verdicts`: of nodes that are looked at whether they satisfy. `node`: the chosen node alone, for which
            all nodes within `node_cells` are examined.
        node_cells: Where only the node is disclosed, the most possible classes of a node that is examined.
        keys: `none`: nodes with more than `MOST_CELLS` possible classes are left out. `union`: where one may be better
            than the best so far, all learn which of its classes occur, and it is examined over these.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    carried: tuple[Carried, ...]
    requirements: Requirements
    max_suppression: Decimal
    algorithm: Algorithm
    insider_k: int
    k_site: int | None
    origin: Origin
    compute: tuple[str, str]
    learners: tuple[str, ...]
    bound: int | None = None
    insiders: int = 1
    disclose: Disclose = "verdicts"
    node_cells: int = NODE_CELLS
    keys: Keys = "none"

    @property
    def k(self) -> int:
        """The least size of a class that follows from the models."""
        return self.requirements.k

    @property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        """Of the quasi-identifiers, in their order."""
        return tuple(each.hierarchy for each in self.quasi_identifiers)

    @property
    def collector(self) -> str:
        """The party that gets all rows in an order that says nothing, and publishes them: the first learner."""
        return self.learners[0]

    @property
    def shuffler(self) -> str:
        """The party that puts rows in that order: a computing party other than the collector."""
        return self.compute[1] if self.collector == self.compute[0] else self.compute[0]

    def coalitions(self, parties: int) -> list[tuple[int, ...]]:
        """The coalitions against which the insider rule holds, by the places of their parties.

        Of every size: a rest that is large enough without a larger coalition may be too small without a smaller one,
        where the larger one has all rows.

        Args:
            parties: How many there are.
        """
        sizes = range(1, self.insiders + 1)
        return [each for size in sizes for each in itertools.combinations(range(parties), size)]

    def cells(self, node: Mapping[int, int]) -> int:
        """How many classes there may be if only some quasi-identifiers are shown.

        Args:
            node: Their levels by their places.
        """
        return math.prod(len(self.hierarchies[place].labels[level]) for place, level in node.items())

    def loss_unit(self, n_rows: int) -> int:
        """What a suppressed cell has lost, in units in which all losses are whole numbers and their sum fits a word.

        It is a common multiple of all (leaves − 1). Where that would be too large, losses are rounded to a smaller
        unit. Where the least loss is looked for obliviously, the number of its node takes room in the word, too.
        """
        exact = math.lcm(*(max(len(each.leaves) - 1, 1) for each in self.hierarchies))
        largest = _LARGEST_LOSS >> position_bits(math.prod(self.shape)) if self.disclose == "node" else _LARGEST_LOSS
        return min(exact, largest // max(n_rows * len(self.hierarchies), 1))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Levels of each quasi-identifier."""
        return tuple(each.height + 1 for each in self.hierarchies)


@dataclass(frozen=True)
class Found:
    """What a search has found; all of it is public.

    Attributes:
        node: Level of each quasi-identifier.
        released: Which of the node's possible classes are released, shape (cells,), in mixed radix of the labels.
        statistics: Work of the search.
        keys: Where it was examined over the classes that occur, their numbers among the possible ones, ascending; what
            `released` says is of these.
    """

    node: Node
    released: NDArray[np.bool_]
    statistics: Mapping[str, int]
    keys: NDArray[np.int64] | None = None
