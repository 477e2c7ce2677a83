"""Recorded transcripts hold nothing beyond the statement, and a view depends on the declared output alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pytest
from google.protobuf import symbol_database
from scipy import stats

from crypto.protocols.sums import masked_maximum
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import secure_sum
from link.disclosure import Declared, kinds
from mining.data.transactions import Transactions
from mining.joint.disclosure import learned, openings
from mining.joint.horizontal.mine import mine
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import HorizontalMining
from protos.v1 import common_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.mining.joint.oracle import Rows
from tests.mining.joint.test_horizontal import task_for
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

DATA: dict[str, Rows] = {
    "north": [["a", "b", "c"], ["a", "b"], ["c"], ["d"]] * 6,
    "south": [["a", "b", "c"], ["b", "c"], ["e"]] * 7,
    "east": [["a", "c"], ["a", "b", "c", "f"]] * 5,
}
VARIANTS = {
    "candidates": {"strategy": "level-wise", "disclose": "candidates"},
    "candidates, one learner": {"strategy": "one-shot", "disclose": "candidates", "learners": ("south",)},
    "frequent": {"strategy": "level-wise", "disclose": "frequent"},
    "frequent, one-shot": {"strategy": "one-shot", "disclose": "frequent"},
    "other computing parties": {"strategy": "level-wise", "compute": ("east", "south"), "learners": ("north",)},
    "level-wise": {"strategy": "level-wise"},
    "one-shot": {"strategy": "one-shot"},
    "one-shot, all": {"strategy": "one-shot", "union": "all"},
    "thinned": {"strategy": "level-wise", "thin": True},
    "all items": {"strategy": "level-wise", "universe": "all-items"},
    "catalogue": {"strategy": "level-wise", "universe": "catalogue", "catalogue": tuple("abcdef")},
    "one learner": {"strategy": "one-shot", "learners": ("south",)},
    "two learners": {"strategy": "level-wise", "learners": ("south", "east")},
}


def transcript(data: Mapping[str, Rows], task: HorizontalMining, seed: int = 0) -> list[Frame]:
    frames: list[Frame] = []

    async def role(session):
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)

    run_parties(list(data), role, declared=openings(task, tuple(data)), seed=seed, observe=frames.append)
    return frames


def opening(frame: Frame) -> Opening:
    message = Opening()
    message.ParseFromString(frame.body)
    return message


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_declared_labels_are_opened(variant: str) -> None:
    task = task_for(DATA, Decimal("0.2"), **VARIANTS[variant])
    declared = {d.label: d for d in openings(task, tuple(DATA))}
    sent: dict[tuple[str, str, str], int] = defaultdict(int)
    database = symbol_database.Default()
    for frame in transcript(DATA, task):
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = opening(frame)
            assert frame.receiver in declared[message.label].recipients
            if frame.last:
                sent[frame.sender, frame.receiver, message.label] += message.number
        else:
            allowed = {common_pb2.MASKED, common_pb2.CIPHERTEXT, common_pb2.SHARE, common_pb2.PUBLIC}
            assert kinds(database.GetSymbol(frame.type)) <= allowed
    assert {label for _, _, label in sent} == set(declared)
    for (_, _, label), number in sent.items():
        assert number <= declared[label].maximum


@pytest.mark.parametrize("disclose", ["candidates", "supports"])
def test_a_party_that_is_no_learner_gets_no_sum(disclose: str) -> None:
    task = task_for(DATA, Decimal("0.2"), strategy="level-wise", learners=("south",), disclose=disclose)
    for frame in transcript(DATA, task):
        if frame.type == Opening.DESCRIPTOR.full_name and opening(frame).label == "supports":
            assert frame.receiver == "south"


@pytest.mark.parametrize("variant", ["level-wise", "one-shot", "thinned"])
def test_the_statement_speaks_of_every_union_and_two_parties(variant: str) -> None:
    two = {p: DATA[p] for p in ("north", "south")}
    lines = [line.exact for line in learned(task_for(two, Decimal("0.2"), **VARIANTS[variant]), tuple(two))]
    assert any("the other's count of every frequent itemset" in line for line in lines)
    assert any("the other's number" in line for line in lines)
    assert any("whether the other's local enumeration is bounded" in line for line in lines) == (variant == "one-shot")


def test_with_two_parties_an_opened_sum_tells_the_others_count_and_the_statement_says_so() -> None:
    two = ("north", "south")

    def lines(disclose: str) -> str:
        task = task_for({party: DATA[party] for party in two}, Decimal("0.2"), disclose=disclose)
        return " ".join(line.exact for line in learned(task, two))

    assert "the other's count of every candidate" in lines("candidates")
    assert "the other's count of every frequent itemset" in lines("supports")
    assert "the other's count" not in lines("frequent")


@pytest.mark.parametrize(
    ("options", "of_bit", "of_union", "of_thinned"),
    [
        ({"strategy": "one-shot"}, "", " (if all local enumerations are bounded)", " (if level-wise follows"),
        ({}, " (if one-shot is taken)", " (if one-shot is taken and all local enu", " (if level-wise is taken)"),
        ({"strategy": "level-wise"}, None, None, ""),
        ({"prefer": "disclosure"}, None, None, ""),
    ],
)
@pytest.mark.parametrize("parties", [2, 3])
def test_a_condition_is_named_only_while_it_is_open(
    options: dict[str, str], of_bit: str | None, of_union: str | None, of_thinned: str, parties: int
) -> None:
    """With one-shot the bit is opened whatever comes; the union, and what level-wise opens, hang on it."""
    data = dict(list(DATA.items())[:parties])
    lines = [line.exact for line in learned(task_for(data, Decimal("0.2"), thin=True, **options), tuple(data))]

    def condition(start: str) -> str | None:
        found = [what for what in lines if what.startswith(start)]
        if not found:
            return None
        (what,) = found
        return "".join(what.partition(" (if ")[1:])

    assert condition("whether ") == of_bit
    union = condition("the itemsets of two or more frequent items that are maximal")
    assert union is None if of_union is None else union is not None and union.startswith(of_union)
    thinned = condition("the candidates that are locally frequent")
    assert thinned is not None
    assert thinned.startswith(of_thinned)
    assert bool(thinned) == bool(of_thinned)


@pytest.mark.parametrize("universe", ["frequent-items", "all-items", "hidden"])
@pytest.mark.parametrize("strategy", ["one-shot", "level-wise", "auto"])
def test_of_two_parties_each_knows_where_that_is_which_it_has_not(universe: str, strategy: str) -> None:
    def lines(parties: int) -> list[str]:
        data = dict(list(DATA.items())[:parties])
        task = task_for(data, Decimal("0.2"), universe=universe, strategy=strategy, thin=True)
        return [line.exact for line in learned(task, tuple(data))]

    two, three = lines(2), lines(3)
    assert not any("not at which" in what or "not whose" in what for what in two)
    assert any("not whose" in what or "not at which" in what for what in three)
    assert not any("the other" in what and "the others" not in what for what in three if not what.startswith("of the"))
    (names,) = [what for what in two if what.startswith("the names of ")]
    assert ("that the other does" in names) == (universe != "frequent-items")
    assert ("that it is so at the other" in names) == (universe == "frequent-items")


@pytest.mark.parametrize("others_agree", [True, False])
def test_a_party_that_disagrees_learns_whether_all_others_agree(
    others_agree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the statement speaks of the AND over all *others*; with two parties it is the other's bit."""
    agreed = {"north": False, "south": others_agree, "east": True}
    words: dict[str, int] = {}
    sums: dict[str, int] = {}

    async def sum_of(session, secrets, values, **options):
        words[session.me] = int(values[0])
        total = await secure_sum(session, secrets, values, **options)
        sums[session.me] = int(total[0])
        return total

    async def role(session):
        secrets = await agree(session.lane("keys"))
        task = task_for(DATA, Decimal("0.2"), strategy="one-shot")
        return await HorizontalTally(session, secrets, None, task, 1, 1, 1, {}).all_agree("bounded", agreed[session.me])

    monkeypatch.setattr(masked_maximum, "secure_sum", sum_of)
    line = Declared("enumeration_bounded", frozenset(agreed), "a bit", 1, "now")
    assert not any(run_parties(list(agreed), role, declared=[line]).values())
    assert (sums["north"] == words["north"]) == others_agree


def views(data: Mapping[str, Rows], runs: int) -> tuple[set[tuple[object, ...]], bytes]:
    """Of party north over many runs: the shapes of its view, and all shares it received."""
    task = task_for(DATA, Decimal("0.2"), **VARIANTS["catalogue"], disclose="candidates")
    shapes, shares = set(), b""
    for seed in range(runs):
        received = [f for f in transcript(data, task, seed) if f.receiver == "north"]
        order = sorted(received, key=lambda f: (f.sender, f.lane, f.seq))
        shapes.add(tuple((f.sender, f.lane, f.seq, f.type, len(f.body), f.round) for f in order))
        opened = [opening(f) for f in order if f.type == Opening.DESCRIPTOR.full_name]
        shares += b"".join(message.values for message in opened if message.label == "supports")
    return shapes, shares


def test_the_view_does_not_tell_who_of_the_others_holds_what() -> None:
    """South's and east's rows are dealt anew, their sums stay: the shape is equal and the shares stay uniform.

    Each chi-square test wrongly fails with probability 10⁻⁶.
    """
    rows = [*DATA["south"], *DATA["east"]]
    other = {**DATA, "south": rows[::2], "east": rows[1::2]}
    first, second = views(DATA, 40), views(other, 40)
    assert first[0] == second[0]
    assert len(first[0]) == 1
    halves = [np.unpackbits(np.frombuffer(shares, np.uint8)).reshape(-1, 4) for shares in (first[1], second[1])]
    histograms = [np.bincount(bits @ [8, 4, 2, 1], minlength=16) for bits in halves]  # half bytes: a count is one byte
    for histogram in histograms:
        assert stats.chisquare(histogram).pvalue > 1e-6
    assert stats.chi2_contingency(histograms).pvalue > 1e-6
