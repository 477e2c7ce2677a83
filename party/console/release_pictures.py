"""What a page draws of a release: the lattice of levels with the chosen node, and risk against loss of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

from anonymize.certificate import Certificate

MOST_NODES: Final = 150  # that a picture has room for
_WIDE: Final = 76  # between the middles of two nodes, and of two rows
_HIGH: Final = 64
_EDGE: Final = 40

Node = tuple[int, ...]


class Dot(NamedTuple):
    """A node of the lattice as it is drawn.

    Attributes:
        levels: Of the columns, in their order.
        x: Of its middle.
        y: Of its middle; the original is at the bottom.
        chosen: Whether the release is of these levels.
    """

    levels: str
    x: float
    y: float
    chosen: bool


class Lattice(NamedTuple):
    """A lattice as it is drawn.

    Attributes:
        columns: In the order of the levels.
        dots: The nodes.
        lines: Between nodes that differ by one level: x and y of both ends.
        width: Of the picture.
        height: Of the picture.
    """

    columns: list[str]
    dots: list[Dot]
    lines: Sequence[tuple[float, float, float, float]]
    width: float
    height: float


def lattice_of(certificate: Certificate) -> Lattice | None:
    """The lattice of the levels of all quasi-identifiers; None where there is none, or it has too many nodes."""
    if certificate.node is None or certificate.heights is None or certificate.node.keys() != certificate.heights.keys():
        return None
    columns = list(certificate.node)
    heights = [certificate.heights[name] for name in columns]
    chosen = tuple(certificate.node.values())
    if prod(height + 1 for height in heights) > MOST_NODES:
        return None
    rows: list[list[Node]] = [[] for _ in range(sum(heights) + 1)]
    for node in product(*(range(height + 1) for height in heights)):
        rows[sum(node)].append(node)
    width = max(map(len, rows)) * _WIDE + _EDGE
    height = (len(rows) - 1) * _HIGH + 2 * _EDGE
    places = {
        node: (width / 2 + (place - (len(row) - 1) / 2) * _WIDE, height - _EDGE - level * _HIGH)
        for level, row in enumerate(rows)
        for place, node in enumerate(row)
    }
    lines = [(*places[node], *places[above]) for node in places for above in _above(node) if above in places]
    dots = [Dot(" ".join(map(str, node)), *place, node == chosen) for node, place in places.items()]
    return Lattice(columns, dots, lines, width, height)


def points_of(certificates: Sequence[Certificate], own: Certificate) -> Iterator[dict[str, Any]]:
    """Releases by their highest prosecutor risk and their loss, and which no other beats in both.

    Args:
        certificates: Of the releases; those without classes are left out.
        own: That of the one that the page is about.
    """
    found = [each for each in certificates if each.metrics.get("smallest_class") and "gcp" in each.metrics]
    placed = [(1 / each.metrics["smallest_class"], float(each.metrics["gcp"])) for each in found]
    for each, (risk, loss) in zip(found, placed, strict=True):
        yield {
            "certificate": each.digest,
            "name": f"{each.algorithm}, k = {each.model.k}{', this release' if each.digest == own.digest else ''}",
            "risk": risk,
            "loss": loss,
            "classes": each.classes or 0,
            "suppressed": each.suppressed,
            "pareto": not any(better != (risk, loss) and better[0] <= risk and better[1] <= loss for better in placed),
            "own": each.digest == own.digest,
        }


def _above(node: Node) -> Iterator[Node]:
    return ((*node[:place], node[place] + 1, *node[place + 1 :]) for place in range(len(node)))
