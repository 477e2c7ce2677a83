"""Joint anonymisation that discloses the chosen node finds that of the pooled rows, and opens nothing of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import comine
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import DistinctDiversity, Model, TCloseness
from anonymize.verifier import verify
from crypto.primitives.shares.additive import AdditiveShare
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.statement import statement
from mining.joint.anonymisation import oblivious
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import QuasiIdentifier
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.plan_pb2 import Speed
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    CARRIED,
    ILLS,
    PARTIES,
    Cells,
    divided,
    exhaustive,
    hierarchies,
    joint,
    parted,
    people,
    public_bounds,
    task,
    whole,
)
from tests.mining.joint.anonymisation.test_anonymisation import SHARES, Split, check_declared, expected_rows, released
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job
from tests.mining.joint.models.models_world import shapes

pytestmark = pytest.mark.turn(6)


# -- equal to the pooled release --------------------------------------------------------------------------------------
@given(divided(), SHARES, st.integers(2, 5))
@examples(1, 5)
def test_the_node_is_that_of_the_pooled_rows(split: Split, share: str, k: int) -> None:
    cells, owners, parties = split
    wanted = task(parties, k=k, max_suppression=Decimal(share), disclose="node")
    if len(owners) < k:
        with fails("E100"):
            joint(cells, owners, parties, wanted)
        return
    pooled = optimal(whole(cells), hierarchies(), wanted.requirements, max_suppression=share)
    assert pooled.node is not None
    for found in joint(cells, owners, parties, wanted).values():
        assert found.node == tuple(pooled.node.values())
        assert found.rows is not None
        assert released(wanted, found.rows) == expected_rows(cells, owners, wanted, found.node)
        assert found.statistics == {"nodes": 24, "checked": 24, "left_out": 0}


@pytest.mark.turn(2, "long jobs")
@pytest.mark.slow
@given(divided(12), SHARES, st.integers(1, 3), st.sampled_from((1, 7, 12, 60)), st.sampled_from(("", "l", "t")))
@examples(1, 8)
def test_the_node_within_the_limit_under_all_rules(
    split: Split, share: str, insider_k: int, node_cells: int, model: str
) -> None:
    """Batches of few numbers; nodes that are left out and may be better are counted exactly."""
    cells, owners, parties = split
    choice: dict[str, list[Model]] = {"l": [DistinctDiversity(2, "ill")], "t": [TCloseness(Decimal("0.4"), "ill")]}
    changes: dict[str, Any] = {"insider_k": insider_k, "insiders": min(2, len(parties) - 1), "carried": CARRIED}
    wanted = task(
        parties,
        models=choice.get(model, []),
        max_suppression=Decimal(share),
        disclose="node",
        node_cells=node_cells,
        **changes,
    )
    losses = exhaustive(cells, owners, wanted)
    within = {node: loss for node, loss in losses.items() if wanted.cells(dict(enumerate(node))) <= node_cells}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oblivious, "BATCH", 900)
        if not within:
            with fails("E100"):
                joint(cells, owners, parties, wanted)
            return
        found = joint(cells, owners, parties, wanted)[parties[0]]
    best = min(within, key=lambda node: (within[node], node))
    assert found.node == best
    bounds = public_bounds(cells, owners, wanted)
    outside = [node for node in bounds if wanted.cells(dict(enumerate(node))) > node_cells]
    might = [node for node in outside if (bounds[node], node) < (within[best], best)]
    assert found.statistics["left_out"] == len(might)
    assert found.statistics["checked"] == 24 - len(outside)


def test_over_grpc() -> None:
    cells, parties = people(25, 4), PARTIES[:3]
    wanted = task(parties, k=3, insider_k=2, insiders=2, max_suppression=Decimal("0.2"), disclose="node")
    one = joint(cells, np.arange(25) % 3, parties, wanted, transport="grpc")["south"]
    other = joint(cells, np.arange(25) % 3, parties, wanted)["south"]
    assert one.node == other.node
    assert one.rows is not None
    assert other.rows is not None
    assert (one.rows.cells == other.rows.cells).all()


# -- what is opened ---------------------------------------------------------------------------------------------------
PAIR = (
    QuasiIdentifier("town", "tree", Hierarchy.of("town", [("A", "*"), ("B", "*")])),
    QuasiIdentifier("sex", "tree", Hierarchy.of("sex", [("f", "*"), ("m", "*")])),
)


def pairs(counts: tuple[int, int, int, int]) -> Cells:
    """Rows in (A, f), (A, m), (B, f) and (B, m)."""
    places = np.repeat(np.arange(4), counts).tolist()
    return {
        "town": ["AB"[place // 2] for place in places],
        "sex": ["fm"[place % 2] for place in places],
        "ill": ["flu"] * len(places),
        "note": [""] * len(places),
    }


def opened_values(frames: Iterable[Frame], receiver: str) -> dict[str, list[bytes]]:
    """By label what a party without shares sees opened, shares put together where they are no rows."""
    parts: dict[tuple[str, str], list[bytes]] = defaultdict(list)
    for frame in frames:
        if frame.receiver == receiver and frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            parts[message.label, frame.lane].append(message.values)
    found: dict[str, list[bytes]] = defaultdict(list)
    for (label, _), values in sorted(parts.items()):
        joined: NDArray[Any] = np.stack([np.frombuffer(each, np.uint8) for each in values])
        if label in {"satisfiable", "classes"}:
            joined = np.bitwise_xor.reduce(joined)
        elif label == "node":
            joined = joined.sum(axis=0, dtype=np.uint8)
        if label in {"satisfiable", "classes", "node"}:
            found[label].append(joined.tobytes())
    return found


def test_equal_releases_have_equal_transcripts_of_what_is_opened() -> None:
    """Sexes alone could be released in one table and not in the other: only the verdict on them would tell them apart.

    Both have the same losses at all levels, the same best node and the same classes of it.
    """
    parties, views, owners = PARTIES[:3], list[Any](), np.arange(12) % 3
    for disclose in ("node", "verdicts"):
        changes = {"max_suppression": Decimal("0.05"), "disclose": disclose, "learners": ("north",)}
        wanted = task(parties, k=3, quasi_identifiers=PAIR, **changes)
        for counts in ((5, 1, 1, 5), (6, 0, 5, 1)):
            frames: list[Frame] = []
            outcome = joint(pairs(counts), owners, parties, wanted, frames=frames)
            assert outcome["north"].node == (0, 1)
            labels = check_declared(frames, openings(wanted, parties))
            if disclose == "node":
                assert labels == {"rows", "size classes", "satisfiable", "node", "classes", "reports"}
                told = opened_values(frames, "east")
                assert {label: len(values) for label, values in told.items()} == dict.fromkeys(told, 1)
                views.append([told, [shapes(frames, party) for party in parties]])
            else:
                assert "verdicts" in labels
    assert views[0] == views[1]


def test_verdicts_and_bounds_are_neither_opened_nor_declared() -> None:
    cells, parties = people(40, 3), PARTIES[:4]
    wanted = task(parties, k=3, insider_k=2, max_suppression=Decimal("0.2"), disclose="node")
    frames: list[Frame] = []
    joint(cells, np.arange(40) % 4, parties, wanted, frames=frames)
    declared = openings(wanted, parties)
    labels = check_declared(frames, declared)
    assert labels == {line.label for line in declared}
    assert not labels & {"verdicts", "improvements", "bounds"}
    assert {line.maximum for line in declared if line.label in {"node", "satisfiable"}} == {1}


def test_the_statement_says_what_follows_of_other_nodes() -> None:
    found = statement(job(disclose="node", node_cells=500, max_suppression="0.1"))
    told = " ".join(found.exact_prose())
    assert "whether any node of at most 500 possible classes can be released" in told
    assert "nothing else of any other node" in told
    assert "of nodes that are looked at" not in told
    assert "verdicts" not in {line.label for line in found.declared}


def test_a_node_that_there_is_not() -> None:
    cells, parties = people(30, 3), PARTIES[:3]

    async def beyond(session: Any, halves: Any, numbers: Any, largest: int) -> AdditiveShare:
        value = 31 << 3 if halves.is_first else 0  # 24 candidates take 5 bits, at the top of a byte
        return AdditiveShare(np.array([value], np.uint8), halves.me, halves.holders)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oblivious, "argmin", beyond)
        with fails("E402"):
            joint(cells, np.arange(30) % 3, parties, task(parties, disclose="node"))


# -- jobs -------------------------------------------------------------------------------------------------------------
@pytest.mark.turn(2, "long jobs")
@pytest.mark.slow
def test_the_folder_passes_the_independent_verifier(tmp_path: Path) -> None:
    cells, owners = people(60, 3), np.random.default_rng(1).integers(0, 3, 60)
    data = parted(cells, owners, PARTIES[:3])
    spec = job(disclose="node", max_suppression="0.1", insider_k=2, recipients=("coordinator", "south"))
    comine.simulate(spec, data).save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    plain = comine.simulate(job(max_suppression="0.1", insider_k=2), data).release()
    assert comine.simulate(spec, data).release().node == plain.node


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "samarati"},
        {"algorithm": "mondrian"},
        {"node_cells": 0},
        {"node_cells": 1 << 21},
    ],
)
def test_job_files_that_are_refused(changes: dict[str, Any]) -> None:
    with fails("E100"):
        job(disclose="node", **changes)
    with fails("E100"):
        job(node_cells=5)
    with fails("E100"):
        vertical_job(PARTIES[:2], disclose="node")


def test_too_much_to_examine_is_refused_before_the_job() -> None:
    levels = [[str(leaf), *(str(leaf >> shift) for shift in (1, 2, 3)), "*"] for leaf in range(16)]
    names = [f"q{number}" for number in range(7)]
    changes: dict[str, Any] = {"quasi_identifiers": names, "hierarchies": dict.fromkeys(names, levels)}
    columns = {"ill": {"values": list(ILLS)}}
    with fails("E100"):
        job(**changes, columns=columns, disclose="node")
    assert job(**changes, columns=columns, disclose="node", node_cells=300)


def test_losses_and_places_share_a_word() -> None:
    """Hierarchies of many leaves are rounded to a unit that leaves room for the number of the node."""
    wanted = joint_anonymisation(job(disclose="node"))
    worst = wanted.loss_unit(1 << 45) * len(wanted.hierarchies) * (1 << 45) + 1
    assert (worst + 1) << 5 < 1 << 63
    assert wanted.loss_unit(1000) == joint_anonymisation(job()).loss_unit(1000)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"disclose": "node", "node_cells": 12}, "All nodes of at most 12 possible classes are examined: 16 with 89"),
        ({"keys": "union"}, "Which nodes are examined depends on the rows"),
    ],
)
def test_a_plan_says_what_is_examined(changes: dict[str, Any], says: str) -> None:
    answers = {party: Answer(party, Speed(), 1000, 100) for party in PARTIES[:3]}
    plan = estimate(job(**changes), answers, 0.01)
    assert any(says in sentence for sentence in plan.assumptions)
