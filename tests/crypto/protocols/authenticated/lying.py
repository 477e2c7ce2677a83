"""A computing party of two that lies about its shares, bits and proofs, so that all it says later fits together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pytest

from crypto.primitives.shares.authenticated import AuthenticatedBits
from crypto.primitives.shares.known_bits import KnownBits
from crypto.primitives.shares.xor import words_of
from crypto.protocols.authenticated import and_triples, authenticated_sums, bit_proofs
from crypto.protocols.authenticated.capped import Capped
from crypto.protocols.authenticated.thresholds import Threshold
from link.session import Session

WAYS: Final = (
    "shares",
    "dealt planes",
    "other limit",
    "bound otherwise",
    "proof",
    "same proof",
    "half-gates",
    "products",
)
_METHODS: Final = ("bits", "words", "__xor__", "plus_public", "times_public", "reshaped", "stacked")


@dataclass
class Lies:
    """What has been lied.

    Attributes:
        told: How often.
        numbers: By block, in order, what numbers the party has dealt instead of its own.
    """

    told: int = 0
    numbers: list[Any] = field(default_factory=list)


@contextmanager
def lying(seed: int, cheat: str, holders: tuple[str, str]) -> Iterator[tuple[str, Lies]]:
    """One of the two lies in one way, at a place that the seed picks.

    Yields:
        The way, and what has been lied.
    """
    chance, lies = random.Random(seed), Lies()
    way = chance.choice(WAYS)
    with pytest.MonkeyPatch.context() as patch:
        {
            "shares": _shares,
            "dealt planes": _dealt_planes,
            "other limit": _other_limit,
            "bound otherwise": _bound_otherwise,
            "proof": _proof,
            "same proof": _same_proof,
            "half-gates": _half_gates,
            "products": _products,
        }[way](patch, chance, cheat, cheat == holders[0], lies)
        yield way, lies


def _flipped(values: Any, chance: random.Random) -> Any:
    """With one bit turned over, or some."""
    found = values.copy()
    flat = found.reshape(-1)
    for _ in range(chance.choice((1, 1, 2, 5))):
        flat[chance.randrange(flat.size)] ^= 1
    return found


def _shares(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, _: bool, lies: Lies) -> None:
    """Computes on other bits from some point on, with tags adjusted by what it knows of keys, or on other tags."""
    method, skipped, kind = chance.choice(_METHODS), int(chance.random() ** 2 * 60), chance.randrange(4)
    real: Callable[..., Any] = getattr(AuthenticatedBits, method)
    calls = 0

    def changed(*args: Any) -> Any:
        nonlocal calls
        found = real(*args)
        if found.holder != cheat or not found.values.size:
            return found
        calls += 1
        if calls <= skipped or lies.told:
            return found
        lies.told += 1
        values = _flipped(found.values, chance) if kind != 3 else found.values
        apart = values ^ found.values
        tags = found.tags.copy()
        if kind == 1:
            tags ^= apart * found.key
        elif kind == 2:
            tags ^= apart * np.uint64(chance.getrandbits(64))
        elif kind == 3:
            tags.reshape(-1)[chance.randrange(tags.size)] ^= np.uint64(1 << chance.randrange(64))
        return AuthenticatedBits(values, tags, found.key, found.holder, found.holders)

    patch.setattr(AuthenticatedBits, method, staticmethod(changed) if method == "stacked" else changed)


def _dealt_planes(patch: pytest.MonkeyPatch, chance: random.Random, _: str, is_first: bool, lies: Lies) -> None:
    """Deals other numbers, borrows, carries or capped numbers, and proves what it can."""
    for kind in (Capped, Threshold):
        _instead(patch, kind, is_first, lies, lambda planes: _flipped(planes, chance))


def _instead(patch: pytest.MonkeyPatch, kind: type[Threshold], is_first: bool, lies: Lies, change: Any) -> None:
    real = kind.known

    def changed(self: Threshold, values: Any, limit: int, first: bool) -> Any:
        planes = real(self, values, limit, first)
        if first != is_first or type(self) is not kind:
            return planes
        lies.told += 1
        planes = change(planes)
        lies.numbers.append(words_of(np.packbits(planes[: self.width], axis=1, bitorder="little"), len(values)))
        return planes

    patch.setattr(kind, "known", changed)


def _other_limit(patch: pytest.MonkeyPatch, chance: random.Random, _: str, is_first: bool, lies: Lies) -> None:
    """Deals borrows for a higher limit than it has bound, with numbers that this one allows."""
    more = chance.choice((1, 2, 5))
    for kind in (Capped, Threshold):
        real = kind.known

        def changed(self: Threshold, values: Any, limit: int, first: bool, real: Any = real, kind: Any = kind) -> Any:
            if first != is_first or type(self) is not kind:
                return real(self, values, limit, first)
            lies.told += 1
            top = np.uint64((1 << self.width) - 1)
            values = np.minimum(values + np.uint64(more if chance.random() < 0.5 else 0), top)
            lies.numbers.append(values)
            return real(self, values, min(limit + more, int(top)), first)

        patch.setattr(kind, "known", changed)


def _bound_otherwise(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, _: bool, lies: Lies) -> None:
    """Binds other bits than it computes with and proves."""
    real = authenticated_sums.bound

    async def changed(session: Session, pair: Any, key: Any, bits: Any, *rest: Any) -> Any:
        if session.me != cheat:
            return await real(session, pair, key, bits, *rest)
        lies.told += 1
        found = await real(session, pair, key, _flipped(bits, chance), *rest)
        own = found.known[cheat]
        codes = own.codes ^ (own.values ^ bits[None, :]) * np.uint64(chance.choice((0, int(key))))
        return replace(found, known={**found.known, cheat: KnownBits(bits[None, :], codes, own.key)})

    patch.setattr(authenticated_sums, "bound", changed)


def _proof(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, _: bool, lies: Lies) -> None:
    """Proves relations of other bits than it has bound, or with another mask."""
    real = authenticated_sums.proved

    async def changed(session: Session, pair: Any, own: Any, theirs: Any) -> bool:
        if session.me == cheat:
            lies.told += 1
            place = chance.randrange(4)
            part = own.mask if place == 3 else own.relations[place]
            other = KnownBits(_flipped(part.values, chance), part.codes, part.key)
            if place == 3:
                own = own._replace(mask=other)
            else:
                own = own._replace(relations=own.relations._replace(**{own.relations._fields[place]: other}))
        return await real(session, pair, own, theirs)

    patch.setattr(authenticated_sums, "proved", changed)


def _same_proof(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, is_first: bool, lies: Lies) -> None:
    """Violates a relation and sends the sums that another point, or right bits, would have."""
    real, point = bit_proofs.proof_of, np.uint64(chance.choice((0, 1, chance.getrandbits(64))))
    proved, proving = authenticated_sums.proved, [""]

    async def watched(session: Session, *rest: Any) -> bool:
        proving[0] = session.me
        return await proved(session, *rest)

    def changed(of: Any, asked: Any) -> Any:
        return real(of, asked if proving[0] != cheat else point)

    for kind in (Capped, Threshold):
        _instead(patch, kind, is_first, lies, lambda planes: _flipped(planes, chance))
    patch.setattr(authenticated_sums, "proved", watched)
    patch.setattr(bit_proofs, "proof_of", changed)


def _half_gates(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, _: bool, lies: Lies) -> None:
    """Sends other half-gates, and adapts its products as if it had guessed the other's bits of x."""
    change, guessed = (
        np.uint64(1 << chance.randrange(48)),
        [chance.randrange(2) for _ in range(chance.choice((1, 1, 2)))],
    )
    octets = np.array([change], "<u8").view(np.uint8)[: and_triples.GATE_BYTES]

    def of_gates(gates: Any) -> None:
        gates[: len(guessed)] ^= octets

    def of_products(products: Any) -> None:
        products[: len(guessed)] ^= np.array(guessed, np.uint64) * change

    _computing(patch, cheat, lies, {"_gates": of_gates, "_products": of_products})


def _products(patch: pytest.MonkeyPatch, chance: random.Random, cheat: str, _: bool, lies: Lies) -> None:
    """Has another product of a leaky triple, in one bit, so that z may be wrong."""
    change = np.uint64(1 << chance.choice((0, 0, chance.randrange(48))))

    def of_products(products: Any) -> None:
        products[chance.randrange(len(products))] ^= change

    _computing(patch, cheat, lies, {"_products": of_products})


def _computing(patch: pytest.MonkeyPatch, cheat: str, lies: Lies, changes: Mapping[str, Callable[[Any], None]]) -> None:
    """Changes what the party computes of leaky triples."""
    real = Session.compute

    async def changed(self: Session, function: Any, *args: Any) -> Any:
        found = await real(self, function, *args)
        if self.me == cheat and function.__module__ == and_triples.__name__ and function.__name__ in changes:
            lies.told += 1
            found = found.copy()
            changes[function.__name__](found)
        return found

    patch.setattr(Session, "compute", changed)
