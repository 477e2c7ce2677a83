"""Columns of several parties about the same people, and joint anonymisation of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from jobs.loading import job_of
from jobs.spec.job import JobSpec
from mining.data.formats.table_readers import table_from_arrow
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint.align import RowAlignment
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.vertical.anonymise import anonymise_columns
from mining.joint.anonymisation.vertical.disclosure import openings
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups
from protos.v1.link_pb2 import Frame
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job as horizontal_job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, Cells, people
from tests.mining.joint.models.models_world import run

COLUMNS = ("age", "town", "sex", "ill", "note")


def columns_of(
    cells: Cells, holders: Mapping[str, str], parties: Sequence[str], *, strangers: int = 2
) -> dict[str, Table]:
    """By party its columns, in an order of its own, with some rows that nobody else has."""
    n_rows, found = len(cells["age"]), {}
    for place, party in enumerate(parties):
        ids = [f"p{row}" for row in range(n_rows)] + [f"{party}{row}" for row in range(strangers)]
        order = np.random.default_rng(place).permutation(len(ids)).tolist()
        rows = [row if row < n_rows else 0 for row in order]
        own = {name: [cells[name][row] for row in rows] for name in COLUMNS if holders[name] == party}
        data = {"id": [ids[row] for row in order], **own}
        found[party] = table_from_arrow(
            pa.table({name: pa.array(column, pa.string()) for name, column in data.items()}), ("id",), "the test"
        )
    return found


def joint(
    cells: Cells,
    holders: Mapping[str, str],
    parties: Sequence[str],
    wanted: JointAnonymisation,
    *,
    frames: list[Frame] | None = None,
    seed: int = 0,
    transport: Literal["memory", "grpc"] = "memory",
    tables: Mapping[str, TableRows] | None = None,
    groups: Groups = (),
) -> dict[str, JointRelease]:
    """Every party's outcome."""
    alignment = RowAlignment(parties[0], "union" if groups else "intersection")
    return run(
        columns_of(cells, holders, parties) if tables is None else tables,
        lambda session, own: anonymise_columns(session, own, wanted, alignment, groups=groups),
        openings(wanted, parties, alignment, groups),
        frames=frames,
        seed=seed,
        transport=transport,
    )


@dataclass(frozen=True)
class GroupedPeople:
    """People whose columns are at groups, and of each group which party has each person; −1: none.

    Attributes:
        cells: Of all people, those apart that some group has not.
        members: By group how many parties it has.
        holders: By column the number of its group.
        at: By group, shape (people,).
    """

    cells: Cells
    members: Sequence[int]
    holders: Mapping[str, int]
    at: Sequence[NDArray[np.int64]]

    @classmethod
    def drawn(cls, n_rows: int, members: Sequence[int], seed: int, *, missing: bool = True) -> GroupedPeople:
        chance = np.random.default_rng(seed)
        holders = dict(zip(COLUMNS, chance.integers(0, len(members), len(COLUMNS)).tolist(), strict=True))
        return cls(
            people(n_rows, seed), members, holders, [chance.integers(-int(missing), each, n_rows) for each in members]
        )

    @property
    def groups(self) -> Groups:
        """Their names sort otherwise than their parties'."""
        parties = iter(PARTIES)
        return tuple(
            ColumnGroup(f"g{place}", tuple(next(parties) for _ in range(each)))
            for place, each in enumerate(self.members)
        )

    @property
    def parties(self) -> tuple[str, ...]:
        """Those of the groups in turn."""
        return tuple(
            party
            for place in range(max(self.members))
            for group in self.groups
            for party in group.members[place : place + 1]
        )

    @property
    def joined(self) -> Cells:
        """The rows that a party of every group has."""
        common = np.flatnonzero(np.logical_and.reduce([each >= 0 for each in self.at])).tolist()
        return {name: [column[row] for row in common] for name, column in self.cells.items()}

    def tables(self) -> dict[str, Table]:
        """By party its columns of its rows, with rows that no other group has."""
        found = {}
        for place, group in enumerate(self.groups):
            for member, party in enumerate(group.members):
                rows = np.flatnonzero(self.at[place] == member)[::-1].tolist()
                data = {"id": [f"p{row}" for row in rows] + [f"{party}'s"]}
                for name in COLUMNS:
                    if self.holders[name] == place:
                        data[name] = [self.cells[name][row] for row in rows] + [self.cells[name][0]]
                columns = {name: pa.array(each, pa.string()) for name, each in data.items()}
                found[party] = table_from_arrow(pa.table(columns), ("id",), "the test")
        return {party: found[party] for party in self.parties}

    def job(self, **changes: Any) -> JobSpec:
        """A job over them."""
        groups = {group.name: list(group.members) for group in self.groups}
        return job(self.parties, groups=groups, align={"mode": "union"}, **changes)

    def release(self, wanted: JointAnonymisation, **options: Any) -> dict[str, JointRelease]:
        """Every party's outcome; as `joint`."""
        options = {"tables": self.tables(), "groups": self.groups, **options}
        return joint(self.cells, {}, self.parties, wanted, **options)


@st.composite
def shared_people(draw: st.DrawFn, parties: int | None = None) -> tuple[Cells, dict[str, str], tuple[str, ...]]:
    """People, and which party has which column; some parties may have none."""
    n_rows = draw(st.integers(6, 50))
    names = PARTIES[: parties or draw(st.integers(2, 4))]
    held = {column: draw(st.sampled_from(names)) for column in COLUMNS}
    return people(n_rows, draw(st.integers(0, 1 << 16))), held, names


def released(release: Any) -> list[tuple[Any, ...]]:
    """Rows as a sorted list: class, then published columns."""
    rows = release.rows
    return sorted(zip(rows.cells.tolist(), *(rows.carried[name] for name in ("ill", "note")), strict=True))


def job(parties: Sequence[str], *, recipients: Sequence[str] = ("all",), **changes: Any) -> JobSpec:
    """A job over these columns; `changes` are of its own table, or of others by their names."""
    others = {name: changes.pop(name) for name in ("align", "trust", "union", "groups") if name in changes}
    rows = horizontal_job(parties).model_dump(mode="json", exclude_unset=True)
    contents: dict[str, Any] = {
        "job": {**rows["job"], "partition": "vertical", "recipients": list(recipients)},
        "anonymize": {**rows["anonymize"], **changes},
        **others,
    }
    del contents["anonymize"]["insider_k"]
    contents["anonymize"] |= {name: changes[name] for name in ("insider_k",) if name in changes}
    return job_of(contents, "the test", Path())
