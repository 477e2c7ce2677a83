"""Every learner holds the release against its own rows, what was agreed, and the models."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import comine
from anonymize.certificate import Certificate
from anonymize.fulldomain.optimal import optimal
from anonymize.fulldomain.samarati import samarati
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import BetaLikeness, DeltaDisclosure, Model, TCloseness
from anonymize.verifier import verify
from link.errors import ProtocolViolation
from mining.joint.anonymisation.parameters import Carried, QuasiIdentifier
from mining.joint.anonymisation.release_check import check_contained, check_models
from mining.joint.anonymisation.row_form import HEAD, Assembled, Form
from mining.joint.anonymisation.vertical import assembly as vertical_assembly
from tests.errors import fails
from tests.examples import examples, slowly
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import (
    AGES,
    ILLS,
    PARTIES,
    SEXES,
    TOWNS,
    divided,
    hierarchies,
    joint,
    parted,
    people,
    task,
    whole,
)
from tests.mining.joint.anonymisation.test_anonymisation import MODELS, SHARES, Split
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS
from tests.mining.joint.anonymisation.vertical_anonymisation_world import joint as vertical

pytestmark = pytest.mark.turn(6)

Rows = NDArray[np.uint8]

COMPARED: dict[str, Model] = {
    "beta": BetaLikeness(Decimal("0.5"), "ill"),
    "enhanced beta": BetaLikeness(Decimal(2), "ill", enhanced=True),
    "delta": DeltaDisclosure(Decimal("0.7"), "ill"),
    "t by a tree": TCloseness(
        Decimal("0.1"),
        "ill",
        "hierarchical",
        hierarchy=Hierarchy.of("ill", [("flu", "a", "*"), ("cold", "a", "*"), ("ulcer", "b", "*"), ("", "b", "*")]),
    ),
}


# -- a collector that changes rows -------------------------------------------------------------------------------------
def _largest(rows: Rows) -> NDArray[np.int64]:
    """The rows of the largest class."""
    cells = np.ascontiguousarray(rows[:, :10]).view(HEAD).reshape(-1)["cell"].astype(np.int64)
    return np.flatnonzero(cells == np.bincount(cells).argmax())


def _doubled(rows: Rows) -> Rows:
    changed, big = rows.copy(), _largest(rows)
    changed[big[1]] = changed[big[0]]
    return changed


def _one_illness(rows: Rows) -> Rows:
    changed = rows.copy()
    changed[_largest(rows), 10] = 0
    return changed


def _mixed(rows: Rows) -> Rows:
    changed = rows.copy()
    changed[:, 10:14] = rows[::-1, 10:14]
    return changed


ATTACKS: dict[str, Callable[[Rows], Rows]] = {
    "drop": lambda rows: np.delete(rows, _largest(rows)[:2], 0),
    "double": _doubled,
    "add": lambda rows: np.concatenate([rows, rows[_largest(rows)[:1]]]),
    "one illness": _one_illness,
    "mixed": _mixed,
}


@pytest.mark.parametrize(
    ("attack", "share"),
    [(name, "0" if name == "add" or place % 2 else "0.1") for place, name in enumerate(ATTACKS)],
)
def test_a_collector_that_changes_rows_is_named(attack: str, share: str) -> None:
    """A row more that fits is not noticed where as many are left out."""
    cells, owners, parties = people(60, 1), np.random.default_rng(1).integers(0, 3, 60), PARTIES[:3]
    original = Form.sorted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Form, "sorted", lambda self, rows: original(self, ATTACKS[attack](original(self, rows))))
        with fails("E400") as raised:
            joint(cells, owners, parties, task(parties, max_suppression=Decimal(share)))
    assert raised.value.party == "north"


def test_rows_of_others_that_are_left_out_are_noticed_where_none_may_be() -> None:
    """South and north learn; the rows that get lost are east's."""
    cells, parties = people(60, 1), PARTIES[:3]
    cells["note"] = ["east" if row % 3 == 2 else "" for row in range(60)]
    original = Form.sorted

    def lose(rows: Rows) -> Rows:
        easts = [row for row in _largest(rows).tolist() if b"east" in rows[row].tobytes()]
        return np.delete(rows, easts[:2], 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Form, "sorted", lambda self, rows: lose(original(self, rows)))
        with pytest.raises(ProtocolViolation) as raised:
            joint(cells, np.arange(60) % 3, parties, task(parties, learners=("north", "south")))
    assert raised.value.party == "north"


def test_a_collector_that_changes_a_learners_columns_is_named() -> None:
    """The last byte of a joined row is of the note, which south has."""
    cells, parties = people(40, 2), PARTIES[:2]
    cells["note"] = ["abcdef"] * 40
    holders = dict(zip(COLUMNS, ("north", "north", "south", "north", "south"), strict=True))
    original = vertical_assembly.Forms.bytes_of

    def changed(self: Any, words: Any) -> Any:
        rows = original(self, words).copy()
        rows[0, -1] = ord("x")
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical_assembly.Forms, "bytes_of", changed)
        with pytest.raises(ProtocolViolation) as raised:
            vertical(cells, holders, parties, task(parties))
    assert raised.value.party == "north"


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_rows_are_contained_as_often_as_they_are(some: list[int], among: list[int]) -> None:
    wanted = task(PARTIES[:2])
    left, right = (np.array([[each, 7] for each in part], np.uint8).reshape(-1, 2) for part in (some, among))
    if all(some.count(each) <= among.count(each) for each in some):
        check_contained(wanted, left, right)
        return
    with pytest.raises(ProtocolViolation):
        check_contained(wanted, left, right)


# -- models ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*MODELS, *COMPARED])
@given(st.integers(0, 1 << 16), st.integers(8, 80))
@settings(max_examples=15)
def test_models_are_judged_as_by_the_library_on_the_pooled_rows(name: str, seed: int, n_rows: int) -> None:
    model = {**MODELS, **COMPARED}[name]
    kind: Any = "ordinal" if name == "t ordered" else "tree"
    carried = (Carried("ill", "sensitive", kind, ILLS, 5),)
    wanted = task(PARTIES[:2], k=2, models=[model], carried=carried)
    cells = people(n_rows, seed)
    if set(cells["ill"]) != set(ILLS):
        return  # the library wants all listed values to occur
    labels = np.arange(n_rows) % max(n_rows // 8, 1)
    table = whole(cells, {"ill": ILLS} if kind == "ordinal" else {})
    good = wanted.requirements.fitted(table).check(labels, int(labels.max()) + 1, table.sensitive).all()
    totals = {"ill": np.array([cells["ill"].count(each) for each in ILLS])}
    whole_ = Assembled(labels, None, {"ill": cells["ill"]})
    if good:
        check_models(wanted, totals, whole_)
        return
    with pytest.raises(ProtocolViolation) as raised:
        check_models(wanted, totals, whole_)
    assert raised.value.party == "north"


def test_values_that_no_row_has_are_noticed() -> None:
    wanted = task(PARTIES[:2], k=2, models=[TCloseness(Decimal(1), "ill")])
    totals = {"ill": np.array([4, 0, 2, 0])}
    check_models(wanted, totals, Assembled(np.zeros(3, np.int64), None, {"ill": ["flu", "flu", "ulcer"]}))
    with pytest.raises(ProtocolViolation):
        check_models(wanted, totals, Assembled(np.zeros(3, np.int64), None, {"ill": ["flu", "flu", "cold"]}))


# -- ordinal quasi-identifiers, and leaves that are one number ---------------------------------------------------------
ORDINAL = (
    QuasiIdentifier("age", "numeric", AGES),
    QuasiIdentifier("town", "ordinal", TOWNS),
    QuasiIdentifier("sex", "tree", SEXES),
)


@pytest.mark.parametrize("algorithm", slowly(["optimal", "samarati"], now=[0]))
@given(divided(12), SHARES)
@examples(1, 3)
def test_ordinal_quasi_identifiers_are_those_of_the_pooled_rows(algorithm: Any, split: Split, share: str) -> None:
    cells, owners, parties = split
    wanted = task(parties, quasi_identifiers=ORDINAL, algorithm=algorithm, max_suppression=Decimal(share))
    search: Any = {"optimal": optimal, "samarati": samarati}[algorithm]
    table = whole(cells, {"town": ("A", "B", "C")})
    pooled = search(table, hierarchies(), wanted.requirements, max_suppression=share)
    assert joint(cells, owners, parties, wanted)[parties[0]].node == tuple(pooled.node.values())


@pytest.mark.parametrize("algorithm", slowly(["samarati", "mondrian"], now=[1]))
def test_a_job_with_an_ordinal_quasi_identifier_passes_the_verifier(algorithm: str, tmp_path: Path) -> None:
    cells, owners = people(60, 3), np.random.default_rng(1).integers(0, 3, 60)
    kinds = {"age": {"kind": "numeric"}, "town": {"kind": "ordinal"}}
    values = {"ill": {"values": list(ILLS)}, "note": {"most_bytes": 6}}
    spec = job(algorithm=algorithm, columns={**kinds, **values})
    comine.simulate(spec, parted(cells, owners, PARTIES[:3])).save(tmp_path / "out")
    assert verify(tmp_path / "out").ok


def test_a_value_that_an_ordinal_quasi_identifier_lacks() -> None:
    cells, parties = people(20, 1), PARTIES[:2]
    cells["town"][3] = "Z"
    with fails("E101") as raised:
        joint(cells, np.arange(20) % 2, parties, task(parties, quasi_identifiers=ORDINAL))
    assert raised.value.party == "south"


@pytest.mark.parametrize("twice", ["30.0", "030", "3e1"])
def test_leaves_that_are_one_number_are_refused(twice: str) -> None:
    tree = Hierarchy.of("age", [("30", "*"), (twice, "*"), ("[1, 2)", "*")])
    with fails("E101"):
        QuasiIdentifier("age", "numeric", tree)
    QuasiIdentifier("age", "tree", tree)


# -- the verifier ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def with_suppression(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release that lacks some rows."""
    cells, owners = people(60, 3), np.random.default_rng(1).integers(0, 3, 60)
    folder = tmp_path_factory.mktemp("suppression")
    comine.simulate(job(max_suppression="0.1"), parted(cells, owners, PARTIES[:3])).save(folder)
    return folder


@pytest.mark.parametrize(
    ("share", "failing"), [("0.1", []), ("0", ["suppressed rows"]), ("1/0", ["suppressed rows"]), (None, [])]
)
def test_the_verifier_counts_suppressed_rows(
    share: str | None, failing: list[str], with_suppression: Path, tmp_path: Path
) -> None:
    """A certificate that tells no share is not held against one."""
    shutil.copytree(with_suppression, tmp_path, dirs_exist_ok=True)
    made = Certificate.read(tmp_path / "certificate.json")
    assert made.suppressed
    changed = {**made.parameters, "max_suppression": share}
    made.model_copy(update={"parameters": changed}).sealed().write(tmp_path / "certificate.json")
    found = verify(tmp_path)
    assert [each.check for each in found.failures] == failing
    assert ("suppressed rows" in [each.check for each in found.findings]) == (share is not None)
