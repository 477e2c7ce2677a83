"""Every engine of joint vertical mining: the joined table's itemsets, and nothing seen but what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from mining.data.tables import Table
from mining.joint.parameters import Disclose, JointItemsets
from mining.joint.vertical.aligned import Aligned
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.disclosure import collusion, learned, openings
from mining.joint.vertical.engines.engine import Setup
from mining.joint.vertical.engines.paillier import products as paillier
from mining.joint.vertical.mine import mine
from mining.joint.vertical.parameters import Mode, VerticalMining, holders_of
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.products_world import assert_views_alike
from tests.crypto.protocols.two_party_world import shapes_of
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.oracle import pooled_supports
from tests.mining.joint.vertical.test_vertical import columns_of, tables
from tests.mining.joint.vertical.vertical_world import ENGINES, dealings_of, helper_of, mine_all, quick_keys
from tests.world import run_parties

__all__ = ["quick_keys"]

pytestmark = [pytest.mark.usefixtures("quick_keys"), pytest.mark.turn(3)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["intersection", "union"])
@given(tables(), st.integers(1, 6), st.data())  # each of them a whole job
@examples(1, 3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equals_mining_the_joined_table(engine: str, mode: Mode, case, least: int, data: st.DataObject) -> None:
    found, presence, n = case
    if mode == "intersection":
        presence = {party: [True] * n for party in presence}
    parties = tuple(found)
    common = [all(presence[party][row] for party in parties) for row in range(n)]
    task = VerticalMining(
        min(least, max(1, sum(common))),
        tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True))),
        tuple(data.draw(st.permutations(parties))[:2]),
        parties[0],
        mode,
        disclose=data.draw(st.sampled_from(["candidates", "supports", "frequent"])),
        engine=engine,
        helper=helper_of(engine, parties),
    )
    columns = {party: columns_of(found[party], presence[party], everywhere=mode == "intersection") for party in parties}
    if not any(common):
        with fails("E101"):
            mine_all(columns, task)
        return
    joined = [
        [item for party in parties for item, bits in found[party].items() if bits[row]]
        for row in range(n)
        if common[row]
    ]
    expected = pooled_supports({"all": joined}, task.min_support)
    for party, result in mine_all(columns, task).items():
        assert result.strategy == f"level-wise, {engine}"
        if party not in task.learners:
            assert result.itemsets is None
            continue
        assert result.itemsets is not None
        rows = {frozenset(itemset): count for itemset, count in result.itemsets.rows()}
        assert set(rows) == set(expected)
        if task.disclose != "frequent":
            assert rows == expected


# -- leakage -----------------------------------------------------------------------------------------------------------
ROWS = 600


def columns(names: str, bits: np.ndarray) -> Aligned:
    named = {f"{name}=v": row.tolist() for name, row in zip(names, bits, strict=True)}
    return columns_of(named, [True] * ROWS, everywhere=True)


@pytest.mark.parametrize(("parties", "engine"), [("ab", "paillier"), ("ab", "ot"), ("abc", "replicated")])
def test_a_view_does_not_depend_on_the_others_columns(engine: str, parties: str) -> None:
    """Where the declared output is equal: frames of the same shapes, shares uniform and alike.

    Two tables; every statistical test errs with probability 1e-6.
    """
    draw = np.random.default_rng(0)
    own = draw.random((3, ROWS)) < [[0.5], [0.6], [0.1]]
    others = draw.random((len(parties) - 1, 3, ROWS)) < [[[0.5], [0.6], [0.1]]]
    views, outputs = list[list[Frame]](), []
    for run in range(2):
        # The others' rows change places with rows that are alike at a: all joint supports stay as they are.
        order = np.arange(ROWS)
        for alike in np.unique(own, axis=1, return_inverse=True)[1] == np.arange(8)[:, None]:
            order[alike] = np.random.default_rng(run).permutation(order[alike])
        data = {"a": columns("ABC", own)}
        for place, party in enumerate(parties[1:]):
            names = ["DEF", "GHI"][place]
            data[party] = columns(names, others[place][:, order])
        task = VerticalMining(Decimal("0.2"), ("a",), ("a", "b"), "a", engine=engine, helper=helper_of(engine, parties))
        frames = list[Frame]()
        found = mine_all(data, task, observe=frames.append, seed=run)["a"]
        assert found.itemsets is not None
        outputs.append(sorted((sorted(itemset), count) for itemset, count in found.itemsets.rows()))
        views.append([frame for frame in frames if frame.receiver == "a"])
    assert outputs[0] == outputs[1]
    assert max(len(itemset) for itemset, _ in outputs[0]) >= 2
    assert shapes_of(views[0]) == shapes_of(views[1])
    assert opened(views[0]) == opened(views[1])
    assert_views_alike(views)


def opened(frames: Sequence[Frame]) -> dict[tuple[str, str], list[bytes]]:
    """What was opened under each label but the computing parties' shares of bits, which are uniform."""
    found: dict[tuple[str, str], list[bytes]] = {}
    for frame in frames:
        if frame.type.endswith(".Opening"):
            opening = Opening.FromString(frame.body)
            if opening.label not in ("frequent", "supports"):
                found.setdefault((frame.sender, opening.label), []).append(opening.values)
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_union_a_view_does_not_tell_whose_rows_are_shared(engine: str) -> None:
    """Two parties with 16 rows each, 8 shared: which of a's 8, its view is of the same shapes, and so is the output."""
    task = VerticalMining(4, ("a",), ("a", "b"), "a", "union", engine=engine, helper=helper_of(engine, "ab"), bound=16)
    views, outputs, dealt = list[list[Frame]](), [], dealings_of("ab")

    def people(ids: Sequence[int], name: str, parity: int) -> Table:
        cells = {"id": [f"p{number:02}" for number in ids], name: ["xy"[(number + parity) % 2] for number in ids]}
        chunks = [pa.chunked_array([pa.array(column)]) for column in cells.values()]
        return Table.of(list(cells), chunks, ["id"], "the test")

    for shared in (range(8), range(8, 16)):
        frames = list[Frame]()
        data = {"a": people(range(16), "A", 0), "b": people([*shared, *range(20, 28)], "B", 0)}

        async def role(session: Session) -> JointItemsets:
            me = session.me
            dealings = dealt[me] if engine == "replicated" else None
            return await mine(session.lane("task"), data[me], task, dealings=dealings)  # noqa: B023 - awaited here

        out = run_parties("ab", role, declared=openings(task, ("a", "b")), observe=frames.append, deadline_s=240)
        assert out["a"].n_rows == 8
        assert out["a"].itemsets is not None
        outputs.append(sorted((sorted(itemset), count) for itemset, count in out["a"].itemsets.rows()))
        views.append([frame for frame in frames if frame.receiver == "a"])
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 6  # each column's two items, and the two pairs that occur
    assert shapes_of(views[0]) == shapes_of(views[1])


# -- who takes which part ----------------------------------------------------------------------------------------------
def test_auto_needs_nobodys_trust_unless_the_job_allows_it() -> None:
    plain = VerticalMining(1, ("a",), ("a", "b"), "a")
    assert chosen_engine(plain).name == "ot"
    assert chosen_engine(replace(plain, helper="c")).name == "replicated"
    assert chosen_engine(replace(plain, engine="paillier")).name == "paillier"


@pytest.mark.parametrize(
    ("compute", "helper", "holders"),
    [
        (("a", "b"), None, ("a", "b", "c")),
        (("d", "b"), None, ("b", "d", "a")),
        (("b", "c"), "d", ("b", "c", "d")),
        (("b", "c"), "a", ("b", "c", "a")),
    ],
)
def test_the_three_who_hold_shares(compute: tuple[str, str], helper: str | None, holders: tuple[str, str, str]) -> None:
    task = VerticalMining(1, ("a",), compute, "a", engine="replicated", helper=helper)
    assert holders_of(task, "abcd") == holders
    data = {party: columns_of({f"{party}=v": [True, party != "c"]}, [True, True], everywhere=True) for party in "abcd"}
    found = mine_all(data, task)["a"].itemsets
    assert found is not None
    assert {frozenset(itemset): count for itemset, count in found.rows()} == pooled_supports(
        {"all": [["a=v", "b=v", "c=v", "d=v"], ["a=v", "b=v", "d=v"]]}, 1
    )


@pytest.mark.parametrize(("parties", "helper"), [("ab", None), ("ab", "coordinator"), ("abc", "a")])
def test_nobody_helps(parties: str, helper: str | None) -> None:
    task = VerticalMining(1, ("a",), ("a", "b"), "a", engine="replicated", helper=helper)

    async def role(session: Session) -> None:
        secrets = await agree(session)
        with fails("E100"):
            chosen_engine(task).start(Setup(session.lane("engine"), task, secrets, pairs_of(session)))

    run_parties(parties, role)


@pytest.mark.parametrize("disclose", ["candidates", "supports", "frequent"])
def test_the_statement_says_who_may_not_work_together(disclose: Disclose) -> None:
    def said(engine: str, parties: str, helper: str | None = None) -> str:
        task = VerticalMining(1, ("a",), ("a", "b"), "a", disclose=disclose, engine=engine, helper=helper)
        lines = " ".join(f"{line.who} {line.exact}" for line in learned(task, tuple(parties)))
        return f"{collusion(task, tuple(parties))} {lines}"

    dealt = said("replicated", "ab", "coordinator")
    assert "none: the coordinator, who deals randomness, and either party together" in dealt
    assert "('coordinator', 'a') which rows hold which items of b, if they work together" in dealt
    assert "('coordinator', 'b') which rows hold which items of a, if they work together" in dealt
    assert "('coordinator',) as the dealer, the number of positions" in dealt
    several = said("replicated", "abcd", "d")
    assert "any two of a, b and d together can read the columns of all parties" in several
    assert "('a', 'b', 'd') which rows hold which items of all parties, if any two of them work together" in several
    for engine in ("ot", "paillier", "auto"):
        assert "withstand all other parties together" in said(engine, "abc")
        assert "no 2 parties together learn more of rows" in said(engine, "abc")
        assert "none is needed" in said(engine, "ab")
        assert ("how long the other takes to answer" in said(engine, "ab")) == (engine == "paillier")


# -- keys and stocks ---------------------------------------------------------------------------------------------------
def test_the_key_goes_to_whom_it_saves_most() -> None:
    few, many = np.arange(3), np.arange(200)
    pairs = np.stack(np.meshgrid(few, many), axis=-1).reshape(-1, 2)

    def holder(pairs: Pairs) -> str:
        return paillier.Encrypted().roles(("a", "b"), (0, 10_000), pairs, None).holder

    assert holder(pairs) == "a"
    assert holder(pairs[:, ::-1]) == "b"
    assert holder(pairs[:1]) == "a"


def test_what_is_under_encryption_speaks_for_its_holder() -> None:
    """Ten of a's columns with one of b's: a encrypts, unless b's has been encrypted before, as it is for thirty."""
    pairs = np.stack([np.arange(30), np.zeros(30, np.int64)], axis=-1)
    names = {"a": range(30), "b": ["one"]}
    encrypted, pair, rows = paillier.Encrypted(), ("a", "b"), (0, 50_000)
    assert encrypted.roles(pair, rows, pairs[:10], names).holder == "a"
    first = encrypted.roles(pair, rows, pairs, names)
    assert first.holder == "b"
    first.kept.keep(first.kept.parts(first.pairs, first.names))
    again = encrypted.roles(pair, rows, pairs[:10], names)
    assert again.holder == "b"
    assert sum(part.requests for part in again.kept.parts(again.pairs, again.names)) == 0
    for others in ((rows, None), ((0, 49_000), names)):  # nothing is kept for calls without names, or of other rows
        assert encrypted.roles(pair, others[0], pairs[:10], others[1]).holder == "a"


def test_a_stock_is_begun_before_columns_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "WORTH_PROCESSES", 10)
    monkeypatch.setattr(paillier, "available_cores", lambda: 1)
    task = VerticalMining(1, ("a",), ("a", "b"), "a", engine="paillier")

    async def role(session: Session) -> int:
        engine = chosen_engine(task).start(Setup(session.lane("engine"), task, await agree(session), pairs_of(session)))
        assert isinstance(engine, paillier.PaillierProducts)
        await engine.prepare(20)
        assert engine.stocking is not None
        await engine.stocking
        assert engine.key is not None
        _, pool = engine.key
        assert len(pool) == 20
        bits = np.packbits(np.ones((1, 24), np.uint8), axis=1)
        addends = await engine.addends(session.lane("work"), bits, 24, [{"a": 0, "b": 0}])
        engine.close()
        assert engine.key is None
        return int(addends[0])

    out = run_parties("ab", role)
    assert sum(out.values()) % 2**64 == 24
