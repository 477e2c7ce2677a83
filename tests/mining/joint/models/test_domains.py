"""Domains that the parties agree on are those of the pooled tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from mining.data.tables import Table
from mining.joint.models.domains import learned, opened, openings, united
from mining.joint.vertical.names import open_names
from mining.models.attributes import Categorical
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.models.models_world import PARTIES, run

NAMES = ("colour", "size")
TEXTS = st.sampled_from(["", "red", "green", "a=b", "é", "blau"])


def table(cells: dict[str, list[str]]) -> Table:
    columns = [pa.chunked_array([pa.array(texts, pa.string())]) for texts in cells.values()]
    return Table.of(list(cells), columns, (), "a test")


def rows(draw: Any, size: int) -> dict[str, list[str]]:
    return {name: draw(st.lists(TEXTS, min_size=size, max_size=size)) for name in (*NAMES, "other")}


async def unite(session: Session, own: Table) -> tuple[Categorical, ...]:
    secrets = await agree(session.lane("keys"))
    return await united(session.lane("union"), secrets, pairs_of(session.lane("pairs")), own, NAMES, bound=64)


@given(st.data())
@examples(2, 8)
def test_values_at_any_party(data: st.DataObject) -> None:
    parties = PARTIES[: data.draw(st.integers(2, 4))]
    cells = {party: rows(data.draw, data.draw(st.integers(0, 4))) for party in parties}
    split = {party: table(each) for party, each in cells.items()}
    declared = openings(parties, vertical=False, bound=64)
    every = {name: {text for each in cells.values() for text in each[name]} for name in NAMES}
    if not all(every.values()):
        with fails("E101"):
            run(split, unite, declared)
        return
    for found in run(split, unite, declared).values():
        assert [(each.name, set(each.values)) for each in found] == list(every.items())
        assert all(list(each.values) == sorted(each.values, key=str.encode) for each in found)


def test_values_of_columns_at_several_parties() -> None:
    parties = PARTIES[:3]
    split = {
        "north": table({"size": ["L", "S", "L"], "other": ["x", "y", "z"]}),
        "south": table({"colour": ["red", "", "green"]}),
        "east": table({}),
    }
    declared = openings(parties, vertical=True)
    for found in run(split, lambda s, own: opened(s, own, NAMES), declared).values():
        assert found == (Categorical("colour", ("", "green", "red")), Categorical("size", ("L", "S")))


def test_values_of_other_columns_are_refused() -> None:
    async def other(session: Session, own: Table) -> Any:
        if session.me == "south":
            return await open_names(session, "domains", ["wages=7"])
        return await opened(session, own, NAMES)

    split = {"north": table({"size": ["L"]}), "south": table({"colour": ["red"]})}
    with fails("E400") as caught:
        run(split, other, openings(PARTIES[:2], vertical=True))
    assert caught.value.party == "south"


def test_the_statement_speaks_of_the_union() -> None:
    lines = " ".join(line.exact for line in learned(PARTIES[:3], vertical=False))
    assert "of the union of values: " in lines
    assert "not at whom" in lines
