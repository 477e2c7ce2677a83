"""What is planned of a model over columns is what learning it sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

from crypto.protocols.comparison.two_party import Pairs, pairs_of
from link.costs import Costs
from link.session import Session
from link.tasks import together
from link.traffic import Traffic
from mining.joint.models import decision_tree, kmeans, naive_bayes
from mining.joint.models.aligned import AlignedAttributes
from mining.joint.models.costs import Learning, dealt
from mining.models.attributes import Attribute, Categorical, Codes, LabelledRows, Numeric
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, drawn_centroids
from mining.models.naive_bayes import NaiveBayesParameters
from protos.v1.link_pb2 import Frame
from tests.mining.joint.models.models_world import PARTIES, aligned
from tests.traffic import assert_planned, costs_below
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

TARGET = Categorical("class", ("yes", "no", "perhaps"))
COLOURS = Categorical("colour", ("red", "green", "blue", "black"))
SHAPES = Categorical("shape", ("round", "square"))
AGE = Numeric("age", Decimal(0), Decimal(100), 100)
Part = Callable[[Session, Pairs, Any], Awaitable[Any]]


def codes(attribute: Attribute, rows: int, seed: int) -> Codes:
    most = attribute.steps + 1 if isinstance(attribute, Numeric) else attribute.size
    return np.random.default_rng(seed).integers(0, most, rows)


def sent(data: dict[str, AlignedAttributes], part: Part, declared: Any, *, agreed: bool = False) -> dict[str, Costs]:
    """By a part that gets its lane, its agreements, which there may be already, and its rows."""
    frames, rounds = list[Frame](), dict[str, int]()

    async def role(session: Session) -> None:
        task = session.lane("task")
        pairs = pairs_of(session.lane("pairs") if agreed else task.lane("pairs"))
        if agreed:
            await together(each.prepare() for each in pairs.values())
        before = session.costs.rounds
        await part(task, pairs, data[session.me])
        rounds[session.me] = session.costs.rounds - before

    run_parties(list(data), role, declared=declared, observe=frames.append)
    return costs_below(data, "/task", frames, rounds)


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_naive_bayes(n_parties: int, everywhere: bool) -> None:
    parties, rows = PARTIES[:n_parties], 20_000  # of which seeds that a plan counts in vain are a small part
    task = NaiveBayesParameters(TARGET, (COLOURS, SHAPES, AGE))
    every = (TARGET, *task.attributes)
    holders = dealt(TARGET, task.attributes, parties)
    whole = LabelledRows(codes(TARGET, rows, 0), tuple(codes(each, rows, 1) for each in task.attributes))
    presence = None if everywhere else {party: np.ones(rows, bool) for party in parties}
    data = aligned(whole, every, [holders[each.name] for each in every], parties, presence)
    declared = naive_bayes.openings(task, parties, parties[:1], vertical=True, everywhere=everywhere)
    learn = partial(naive_bayes.learn_vertical, task=task, learners=parties[:1])
    costs = sent(data, learn, declared, agreed=not everywhere)
    learning = Learning(task, parties, holders, rows, rows, everywhere, parties[:1], (parties[0], parties[1]))
    assert_planned(entered(learning), costs, range(-20, 20))


def test_a_tree_of_one_level() -> None:
    parties, rows = PARTIES[:2], 4_000
    task = TreeParameters(TARGET, (COLOURS, SHAPES), max_depth=1)
    every = (TARGET, *task.attributes)
    holders = dealt(TARGET, task.attributes, parties)
    whole = LabelledRows(codes(TARGET, rows, 0), tuple(codes(each, rows, 1) for each in task.attributes))
    data = aligned(whole, every, [holders[each.name] for each in every], parties)
    declared = decision_tree.openings(task, parties, vertical=True, everywhere=True)
    costs = sent(data, partial(decision_tree.learn_vertical, task=task), declared)
    learning = Learning(task, parties, holders, rows, rows, True, parties, (parties[0], parties[1]))
    assert_planned(entered(learning), costs, range(-20, 20))


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_k_means(k: int) -> None:
    parties, rows = PARTIES[:3], 600
    attributes = (AGE, Numeric("height", Decimal(0), Decimal(2), 200), Numeric("weight", Decimal(0), Decimal(9), 90))
    task = KMeansParameters(attributes, drawn_centroids(attributes, k, 0), 2 if k > 1 else 1, 4)
    holders, compute = dealt(None, attributes, parties), (parties[2], parties[1])
    data = {
        party: AlignedAttributes({a.name: codes(a, rows, 3) for a in attributes if holders[a.name] == party}, rows)
        for party in parties
    }
    declared = kmeans.openings(task, parties, parties, vertical=True)
    costs = sent(data, lambda s, _, own: kmeans.cluster_vertical(s, own, task, parties, compute), declared)
    learning = Learning(task, parties, holders, rows, rows, True, parties, compute)
    assert_planned(entered(learning), costs, range(-20, 20))


def entered(learning: Learning) -> Traffic:
    traffic = Traffic(learning.parties)
    learning.traffic(traffic)
    return traffic
