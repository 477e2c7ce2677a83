"""Additive sharing over Z_2^w: a secret vector is the sum of its holders' shares modulo 2^w, w being 8, 16, 32 or 64.

A share is a value of its own type, never a bare number: it does not turn into an int, a bool or an array by accident,
and shares of different holders or of different words do not add up silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Never

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.masks import Words
from link.randomness import RandomStream

_WORDS: Final = {np.dtype(word): word for word in (np.uint8, np.uint16, np.uint32, np.uint64)}


class Share:
    """What every kind of share is: a holder's part of a secret, and no value.

    Attributes:
        holder: Name of the party that holds this share.
        holders: Names of all who hold shares of the secret, in the order that all of them use.
    """

    holder: str
    holders: tuple[str, ...]

    # Lets numpy leave `array + share` to this class, which refuses it.
    __array_ufunc__ = None

    def _check_holders(self) -> None:
        if len(set(self.holders)) != len(self.holders) or self.holder not in self.holders:
            raise ValueError("a share's holder must be one of its holders, who must differ")

    @property
    def is_first(self) -> bool:
        """Whether this is the share of the first holder, who alone adds what is public."""
        return self.holder == self.holders[0]

    def _refuse(self, *_: object) -> Never:
        raise TypeError("a share is not a value; open it through the session or reconstruct it from all holders")

    __bool__ = __eq__ = __ne__ = _refuse
    if not TYPE_CHECKING:  # a checker of types finds none of these, and refuses as well
        __int__ = __float__ = __index__ = __len__ = __iter__ = __contains__ = __array__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


def check_same_holders(one: Share, other: Share) -> None:
    """Refuses to combine shares of different holders.

    Raises:
        TypeError: They are of different holders.
    """
    if (one.holder, one.holders) != (other.holder, other.holders):
        raise TypeError("shares of different holders do not add up")


def check_complete(shares: Sequence[Share]) -> None:
    """Checks that there is exactly one share of each holder.

    Raises:
        ValueError: One is missing or doubled, or they are of different secrets.
    """
    if not shares:
        raise ValueError("a secret is reconstructed from the shares of all its holders")
    if any(part.holders != shares[0].holders for part in shares):
        raise ValueError("the shares are of different vectors")
    if sorted(part.holder for part in shares) != sorted(shares[0].holders):
        raise ValueError("a vector is reconstructed from exactly one share of each holder")


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveShare(Share):
    """One holder's share of a vector over Z_2^w.

    Args:
        values: Shape (n,), unsigned words of w bits; kept as a read-only view.
        holder: Name of the party that holds this share.
        holders: Names of all who hold shares of the vector, in the order that all of them use.
    """

    values: Words
    holder: str
    holders: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.dtype not in _WORDS or self.values.ndim != 1:
            raise TypeError("a share holds an array of one dimension: of uint8, uint16, uint32 or uint64")
        self._check_holders()
        object.__setattr__(self, "values", read_only(self.values))

    @property
    def size(self) -> int:
        """Length of the shared vector."""
        return len(self.values)

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The word in which the vector is shared."""
        return _WORDS[self.values.dtype]  # a dtype's own type may be another one of the same size

    @property
    def word_bits(self) -> int:
        """The w of Z_2^w."""
        return self.values.itemsize * 8

    def __add__(self, other: AdditiveShare) -> AdditiveShare:
        return self._with(self.values + self._matching(other).values)

    def __sub__(self, other: AdditiveShare) -> AdditiveShare:
        return self._with(self.values - self._matching(other).values)

    def __neg__(self) -> AdditiveShare:
        return self._with(np.negative(self.values))

    def __getitem__(self, selection: slice | NDArray[np.int64] | NDArray[np.bool_]) -> AdditiveShare:
        """The share of part of the vector; an array of positions or flags, or a slice, never a single position."""
        if not isinstance(selection, slice | np.ndarray):
            raise TypeError("a share is selected from by a slice or an array")
        return self._with(self.values[selection])

    def plus_public(self, constant: int | Words) -> AdditiveShare:
        """Add a public constant to the shared vector.

        Every holder calls this; only the first of `holders` changes its share, so the constant is added once.

        Args:
            constant: An integer, or an array of shape (n,) of the share's own word.
        """
        if not self.is_first:
            return self
        return self._with(self.values + self._residues(constant))

    def times_public(self, factor: int | Words) -> AdditiveShare:
        """Multiply the shared vector by a public factor; every holder does so.

        Args:
            factor: An integer, or an array of shape (n,) of the share's own word.
        """
        return self._with(self.values * self._residues(factor))

    def _with(self, values: Words) -> AdditiveShare:
        return AdditiveShare(values, self.holder, self.holders)

    def _residues(self, number: int | Words) -> Words:
        if isinstance(number, int):
            return np.full(1, number % (1 << self.word_bits), self.word)
        if number.dtype != self.word:
            raise TypeError(f"a public vector must be an array of {self.word.__name__}, the share's own word")
        return number

    def _matching(self, other: object) -> AdditiveShare:
        if not isinstance(other, AdditiveShare):
            raise TypeError("a share adds to a share; a public number goes through plus_public or times_public")
        check_same_holders(self, other)
        check_same_word(self, other)
        if self.size != other.size:
            raise ValueError(f"a share of length {self.size} does not add to one of length {other.size}")
        return other

    def __repr__(self) -> str:
        return f"<AdditiveShare of length {self.size} modulo 2^{self.word_bits}>"


def check_same_word(one: AdditiveShare, other: AdditiveShare) -> None:
    """Refuses to combine shares in different words.

    Raises:
        TypeError: They are shared in different words.
    """
    if one.word is not other.word:
        raise TypeError(f"shares modulo 2^{one.word_bits} and 2^{other.word_bits} do not add up")


def share(values: Words, holders: Sequence[str], random: RandomStream) -> list[AdditiveShare]:
    """Split a vector into shares, of which any but all are independent and uniform.

    Args:
        values: Shape (n,), unsigned; the word in which it is shared.
        holders: Names of at least two holders.
        random: Fresh randomness.

    Returns:
        One share per holder, in the holders' order.

    Raises:
        ValueError: Fewer than two holders.
    """
    if len(holders) < 2:
        raise ValueError("a vector is shared among at least two holders")
    names = tuple(holders)
    parts: list[Words] = [np.frombuffer(random.bytes(values.nbytes), values.dtype) for _ in names[1:]]
    remainder = values.copy()
    for part in parts:
        remainder -= part
    return [AdditiveShare(part, name, names) for part, name in zip([remainder, *parts], names, strict=True)]


def reconstruct(shares: Sequence[AdditiveShare]) -> Words:
    """Add up the shares of all holders.

    Args:
        shares: One share of each holder, in any order.

    Returns:
        The vector, shape (n,), in the shares' word.

    Raises:
        ValueError: A holder's share is missing or doubled, or the shares are of different vectors.
        TypeError: They are shared in different words.
    """
    check_complete(shares)
    first = shares[0]
    if any(part.size != first.size for part in shares):
        raise ValueError("the shares are of different vectors")
    total = np.zeros(first.size, first.word)
    for part in shares:
        check_same_word(first, part)
        total += part.values
    return total
