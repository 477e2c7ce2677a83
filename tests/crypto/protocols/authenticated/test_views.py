"""What one of two sees of triples, circuits and proofs says nothing of what the other holds, beside what is opened.

Each test samples a view often, and looks whether any XOR of its bits is a bit of the other's; and whether bits are as
often 1 in worlds where the other holds other things of the same outcome. Errors: `views`.
"""

from __future__ import annotations

from itertools import product as product_of
from typing import Any

import numpy as np
import pytest

from crypto.primitives.binary_field import product
from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.authenticated import AuthenticatedBits
from crypto.primitives.shares.xor import planes_of
from crypto.protocols.authenticated import and_triples
from crypto.protocols.authenticated.and_triples import make_triples
from crypto.protocols.authenticated.authenticated_sums import Keyed
from crypto.protocols.authenticated.bit_proofs import PROOF_MASK_BITS, Relations, Statement, expected_of, proof_of
from crypto.protocols.authenticated.capped import Capped
from crypto.protocols.authenticated.checks import Witnesses
from crypto.protocols.authenticated.decisions import decision_on
from crypto.protocols.authenticated.thresholds import Threshold
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from protos.v1.authenticated_pb2 import HalfGates, MaskedBits
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.authenticated.test_authenticated_sums import TWO, Job
from tests.crypto.protocols.authenticated.test_bit_proofs import known
from tests.crypto.protocols.views import Bits, are_alike, bits_of, tells
from tests.examples import in_turn
from tests.world import below, run_parties


def data_of(frames: list[Frame], kind: Any, sender: str) -> list[np.ndarray]:
    """What a party has sent in messages of a type, in order."""
    name = kind.DESCRIPTOR.full_name
    return [
        np.frombuffer(kind.FromString(f.body).data, np.uint8) for f in frames if (f.type, f.sender) == (name, sender)
    ]


# -- triples -----------------------------------------------------------------------------------------------------------
class Leaky:
    """Leaky triples of a run: what each holder has of them, and what it was sent."""

    def __init__(self, patch: pytest.MonkeyPatch, seed: int) -> None:
        self.shares: dict[str, list[AuthenticatedBits]] = {name: [] for name in TWO}
        self.hashed: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.frames: list[Frame] = []
        shared, exchanged, compute = and_triples.shared, and_triples.exchanged, Session.compute

        def kept(pair: TwoParty, *args: Any) -> AuthenticatedBits:
            self.shares[pair.me].append(shared(pair, *args))
            return self.shares[pair.me][-1]

        async def opened(session: Session, *args: Any) -> Bits:
            found = await exchanged(session, *args)
            x, y, r = self.shares[session.me]
            self.shares[session.me] = [x, y, r.plus_public(found)]
            return found

        async def computed(session: Session, function: Any, *args: Any) -> Any:
            found = await compute(session, function, *args)
            if getattr(function, "__name__", "") == "_products":
                self.hashed[session.me] = args[0].own[1].copy(), found.copy()
            return found

        patch.setattr(and_triples, "shared", kept)
        patch.setattr(and_triples, "exchanged", opened)
        patch.setattr(Session, "compute", computed)

        async def role(session: Session) -> None:
            keyed = Keyed(session.lane("keys"), TWO)
            await make_triples(session.lane("triples"), keyed.pair, await keyed.key(), Witnesses(), 320)

        run_parties(TWO, role, seed=seed, observe=below("/triples/piece 0", self.frames))
        patch.undo()
        self.gates = {name: data_of(self.frames, HalfGates, name)[0].reshape(-1, 6) for name in TWO}

    def view(self, me: str, peer: str) -> Bits:
        """Of each triple: the half-gate that came, the bit that came, and what this holder has itself."""
        number = len(self.gates[peer])
        masked = unpack_bits(data_of(self.frames, MaskedBits, peer)[0], number)
        parts = [np.unpackbits(self.gates[peer], axis=1, bitorder="little"), masked[:, None]]
        for share in self.shares[me]:
            parts += [share.values[0][:, None], bits_of(share.tags[0])]
        parts += [bits_of(words, 48) for words in self.hashed[me]]
        return np.concatenate(parts, axis=1)


@pytest.mark.parametrize(("me", "peer"), [TWO, TWO[::-1]])
def test_no_sum_of_what_a_holder_has_of_a_triple_tells_bits_of_the_other(
    me: str, peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,600 triples; a view has some 340 bits, so with an error far below 2^-20."""
    found = Leaky(monkeypatch, 5)
    view = found.view(me, peer)
    x, y, z = (share.values[0] for share in found.shares[peer])
    own_x, own_y, own_z = (share.values[0] for share in found.shares[me])
    assert ((x ^ own_x) & (y ^ own_y) == z ^ own_z).all()
    for secret in (x, y, z, x & own_y, y & own_x, x & y, (x ^ own_x) & (y ^ own_y)):
        assert not tells(view, secret)
    for secret in (x, y):  # z is not independent of this holder's part: x·y is 0 most often
        assert are_alike(view[secret == 0], view[secret == 1])
    # Without what hides it, the same test finds it.
    assert tells(np.concatenate([view, (x ^ view[:, 7])[:, None]], axis=1), x)


# -- circuits ----------------------------------------------------------------------------------------------------------
def opened_in_circuits(others: list[int], seed: int, sender: str) -> Bits:
    """Of each candidate, the bits that the sender has opened in ANDs; no candidate is frequent."""
    number, frames, own = len(others), list[Frame](), [4] * len(others)
    counts = [own, others] if sender == "south" else [others, own]
    job = Job([20, 20], counts, 21)
    found = job.run(seed=seed, observe=below("/decide/block 0/ands", frames))
    assert all(result == (40, [], []) for result in found.values())
    rows = [unpack_bits(each, len(each) * 8) for each in data_of(frames, MaskedBits, sender)]
    planes = [bits[: len(bits) // number * number].reshape(-1, number) for bits in rows]
    assert sum(map(len, planes)) >= 2 * decision_on(2, 21, 6).width - 2
    return np.concatenate(planes).T


@pytest.mark.costly
@pytest.mark.parametrize("sender", in_turn(TWO, 2))
def test_no_sum_of_what_is_opened_in_circuits_tells_a_bit_of_a_count(sender: str) -> None:
    """Counts that all lead to the same: nothing is frequent."""
    generator, number = np.random.default_rng(3), 128
    counts = generator.integers(0, 17, number)
    view = opened_in_circuits(counts.tolist(), 1, sender)
    for place in range(5):
        assert not tells(view, (counts >> place & 1).astype(np.uint8))
    worlds = [opened_in_circuits([value] * number, 2 + value, sender) for value in (0, 16)]
    assert are_alike(*worlds)
    assert are_alike(worlds[0], view)


# -- proofs ------------------------------------------------------------------------------------------------------------
WIDTH, LIMIT, RUNS = 5, 20, 90


def proofs_of(decision: Threshold, numbers: np.ndarray, first: bool, point: np.uint64, seed: int) -> Bits:
    """What a verifier with one and the same keys is sent, run by run, about a number within its limit."""
    key, seen = np.uint64(0xD1CE_0000_BEEF_0001), np.empty((len(numbers), 2), np.uint64)
    of_limit = unpack_bits(planes_of(np.array([LIMIT], np.uint64), decision.width), 1)
    masks = np.random.default_rng(seed).integers(0, 2, (len(numbers), 1, PROOF_MASK_BITS), np.uint8)
    for run, (number, mask) in enumerate(zip(numbers, masks, strict=True)):
        keys = np.random.default_rng(9)
        planes = decision.known(np.array([number], np.uint64), LIMIT, first)
        sides = [known(each, keys, key) for each in (planes, of_limit, mask)]
        prover, verifier = (
            Statement(Relations.stacked(decision.relations(own, limit, first)), covered)
            for own, limit, covered in zip(*sides, strict=True)
        )
        sums = proof_of(prover, point)
        assert (sums[:1] ^ product(sums[1:], np.array([key])) == expected_of(verifier, point)).all()
        seen[run] = sums
    return np.concatenate([bits_of(seen[:, 0]), bits_of(seen[:, 1])], axis=1)


CASES = list(product_of((Threshold, Capped), (True, False), (0, 1, 0x1234_5678_9ABC_DEF0)))


@pytest.mark.costly
@pytest.mark.parametrize(("kind", "first", "point"), in_turn(CASES, 12))
def test_no_sum_of_what_a_verifier_sees_tells_a_bit_of_the_number(
    kind: type[Threshold], first: bool, point: int
) -> None:
    """Whatever point it draws, also 0 and 1, where powers of it hide nothing."""
    numbers = np.random.default_rng(4).integers(0, LIMIT + 1, RUNS).astype(np.uint64)
    view = proofs_of(kind(13, WIDTH), numbers, first, np.uint64(point), point % 97)
    for secret in bits_of(numbers, WIDTH).T:
        assert not tells(view, secret)
        assert are_alike(view[secret == 0], view[secret == 1])
