"""Runs of joint vertical mining with every engine inside one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.protocols.products.outside_dealer import Dealer, Dealings
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from mining.joint.parameters import JointItemsets
from mining.joint.vertical.aligned import Aligned
from mining.joint.vertical.choice import is_dealt
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.engines.paillier import products as paillier
from mining.joint.vertical.mine import mine_aligned
from mining.joint.vertical.parameters import COORDINATOR, VerticalMining
from protos.v1.link_pb2 import Frame
from tests.mining.joint.oracle import Rows, pooled_supports
from tests.paillier_world import full_key, quick_source
from tests.world import run_parties

Name = Literal["paillier", "ot", "replicated"]
ENGINES: tuple[Name, ...] = ("paillier", "ot", "replicated")


def dealings_of(parties: Iterable[str], seed: int = 0) -> dict[str, Dealings]:
    dealer = Dealer(Randomness.from_seed(seed).derive("dealer"))
    return dict(zip(parties, dealer.here(), strict=True))


@pytest.fixture
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """One Paillier key of 2048 bits for all, with short exponents: made once, and quick."""
    monkeypatch.setattr(paillier, "KEY_BITS", 2048)
    monkeypatch.setattr(paillier, "generate_key", lambda bits, random: full_key())
    source = quick_source()
    monkeypatch.setattr(paillier.OwnerZeros, "of", lambda key, random: source)


def helper_of(engine: str, parties: Iterable[str]) -> str | None:
    """Whom the job has to name."""
    return COORDINATOR if engine == "replicated" and len(tuple(parties)) == 2 else None


def mine_all(
    data: Mapping[str, Aligned],
    task: VerticalMining,
    *,
    observe: Callable[[Frame], None] = lambda frame: None,
    seed: int = 0,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, JointItemsets]:
    """All parties' parts, with no label allowed but those of the statement."""
    parties = tuple(data)
    dealt = dealings_of(parties, seed) if is_dealt(task, parties) else {}

    async def role(session: Session) -> JointItemsets:
        lane, me = session.lane("task"), session.me
        return await mine_aligned(lane, await agree(lane.lane("keys")), data[me], task, dealings=dealt.get(me))

    declared = openings(task, parties)
    return run_parties(
        parties, role, declared=declared, observe=observe, seed=seed, transport=transport, deadline_s=240
    )


def assert_mined(
    results: Mapping[str, JointItemsets],
    joined: Rows,
    task: VerticalMining,
) -> None:
    """Those who learn something learn what mining the joined table finds, with counts where these are disclosed."""
    expected = pooled_supports({"all": joined}, task.min_support)
    for party, result in results.items():
        assert result.n_rows == len(joined)
        if party not in task.learners:
            assert result.itemsets is None
            continue
        assert result.itemsets is not None
        assert result.itemsets.counted == (task.disclose != "frequent")
        rows = {frozenset(itemset): count for itemset, count in result.itemsets.rows()}
        assert rows == (expected if result.itemsets.counted else dict.fromkeys(expected))


def bits_of(frames: Iterable[Frame]) -> NDArray[np.uint8]:
    """The bytes of all bodies."""
    return np.frombuffer(b"".join(frame.body for frame in frames), np.uint8)
