"""A window that slides over a row of cells with the input: near outputs are likelier than far ones, by one factor.

Both the piecewise mechanism and the square wave are this channel, with windows of different widths. Input i of
0 … steps has the window i … i + width − 1 within steps + width cells. A cell of the window gets `inside` of the random
words, any other `outside`, whole numbers with inside / outside ≤ e^ε: no rounding touches the guarantee.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import log_above
from ldp.mechanism import Channel
from ldp.numeric.interval import Floats, Points

Cells = NDArray[np.int64]

_WORDS: Final = 1 << 63  # so that words and cells fit signed numbers


class Windows:
    """The channel from steps + 1 inputs to steps + width cells; a `Likelihood` for `ldp.expectation`, in linear time.

    Args:
        steps: By how many cells the last input's window lies behind the first one's.
        width: Cells of a window.
        factor: The largest ratio of probabilities allowed.

    Attributes:
        cells: How many outputs there are.
        p: The exact probability of each cell in the window.
        q: That of each other cell.
        shrinking: By how much an output's mean moves if the input moves by one step, in steps; it is linear.
    """

    def __init__(self, steps: int, width: int, factor: Fraction) -> None:
        self.steps, self.width = steps, width
        self.cells = steps + width
        self._outside = int(_WORDS // (width * factor + steps))
        self._inside = int(self._outside * factor)
        self._total = self._inside * width + self._outside * steps
        self.p, self.q = Fraction(self._inside, self._total), Fraction(self._outside, self._total)
        self.shrinking = (self.p - self.q) * width

    @property
    def exact_epsilon(self) -> float:
        """ln(p / q)."""
        return log_above(self.p / self.q)

    def draw(self, inputs: Points, rng: Randomness) -> Cells:
        """A cell for each input; one random word decides, apart from words that are drawn again."""
        words = rng.integers(self._total, len(inputs)).astype(np.int64)
        beyond = words - self._inside * self.width
        far = beyond // self._outside
        far += self.width * (far >= inputs)  # the cells outside, numbered without the window
        return np.where(beyond < 0, inputs + words // self._inside, far)

    def centred_variance(self) -> Fraction:
        """The variance of an output if the window lies in the middle, in half steps: twice the cell's number."""
        window, row = (Fraction(size * (size**2 - 1), 3) for size in (self.width, self.cells))
        return (self.p - self.q) * window + self.q * row

    def channel(self) -> Channel:
        """Row: input; column: cell."""
        columns = range(self.cells)
        return [[self.p if i <= y < i + self.width else self.q for y in columns] for i in range(self.steps + 1)]

    def blanket(self) -> Blanket:
        """What all inputs have in common, seen from the first and the last, whose windows have the least in common."""
        shared = max(0, self.width - self.steps)
        weight = self.p * shared + self.q * (self.cells - shared)
        return Blanket.between(weight, self.p / self.q * weight)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of inputs and of cells."""
        return self.steps + 1, self.cells

    def forward(self, distribution: Floats) -> Floats:
        """Probabilities of the cells from the inputs' distribution; shape (cells,)."""
        sums = np.concatenate([[0.0], np.cumsum(distribution)])
        ends = np.minimum(np.arange(1, self.cells + 1), self.steps + 1)
        starts = np.maximum(np.arange(self.cells) - self.width + 1, 0)
        found: Floats = float(self.q) * sums[-1] + float(self.p - self.q) * (sums[ends] - sums[starts])
        return found

    def backward(self, weights: Floats) -> Floats:
        """Each input's expectation of a function of the cell; shape (steps + 1,)."""
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        window = sums[self.width :] - sums[: self.steps + 1]
        found: Floats = float(self.q) * sums[-1] + float(self.p - self.q) * window
        return found
