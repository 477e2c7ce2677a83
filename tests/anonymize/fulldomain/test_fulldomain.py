"""Full-domain recoding as a whole: all algorithms against brute force, and what becomes of suppressed rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.fulldomain import examination
from anonymize.fulldomain.datafly import datafly
from anonymize.fulldomain.incognito import incognito
from anonymize.fulldomain.objectives import LOSSES
from anonymize.fulldomain.optimal import optimal
from anonymize.fulldomain.samarati import samarati
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import DistinctDiversity, EntropyDiversity, KAnonymity, Requirements
from anonymize.roles import Roles
from anonymize.tables import Table
from link.errors import ConfigurationError
from tests.anonymize.fulldomain.cases import brute_force_nodes, check_published, problems, requirements, toy
from tests.anonymize.fulldomain.exhaustive import exhaustive
from tests.errors import fails

ALGORITHMS = (samarati, incognito, optimal, datafly, exhaustive)
shares = st.sampled_from([0.0, 0.1, 0.34, 1.0])


def node_of(release):
    return tuple(release.node.values())


@settings(max_examples=100)
@given(problems(), requirements(), shares, st.sampled_from(LOSSES))
def test_algorithms_agree_with_brute_force(problem, required, share, loss) -> None:
    table, hierarchies = problem
    allowed = int(share * table.n_rows)
    solutions = brute_force_nodes(table, hierarchies, required, allowed)
    if not solutions:
        for algorithm in ALGORITHMS:
            with pytest.raises(ConfigurationError):
                algorithm(table, hierarchies, required, max_suppression=share, loss=loss)
        return
    releases = {
        algorithm.__name__: algorithm(table, hierarchies, required, max_suppression=share, loss=loss)
        for algorithm in (samarati, incognito, optimal, exhaustive)
    }
    least = min(map(sum, solutions))
    assert releases["samarati"].details["minimal_nodes"] == sorted(n for n in solutions if sum(n) == least)
    minimal = [
        n
        for n in sorted(solutions)
        if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in solutions)
    ]
    assert releases["incognito"].details["minimal_nodes"] == minimal
    best = releases["exhaustive"]
    assert node_of(releases["optimal"]) == node_of(best) == node_of(releases["incognito"])
    assert best.details["loss"] <= releases["samarati"].details["loss"] + 1e-12
    for release in releases.values():
        assert len(release.suppressed) == solutions[node_of(release)] <= allowed
        check_published(release, table, hierarchies, required)
        if loss == "gcp":
            assert release.details["loss"] == pytest.approx(release.cell_loss.mean())


@settings(max_examples=60)
@given(problems(), requirements(), shares)
def test_datafly_satisfies_or_fails_at_the_top(problem, required, share) -> None:
    table, hierarchies = problem
    try:
        release = datafly(table, hierarchies, required, max_suppression=share)
    except ConfigurationError:
        top = tuple(hierarchies[c.name].height for c in table.quasi_identifiers)
        assert top not in brute_force_nodes(table, hierarchies, required, int(share * table.n_rows))
    else:
        check_published(release, table, hierarchies, required)


@settings(max_examples=100)
@given(problems(), requirements(), shares, st.sampled_from(["drop", "blank"]), st.sampled_from(["row", "cell"]))
def test_what_becomes_of_suppressed_rows(problem, required, share, suppressed, suppression) -> None:
    table, hierarchies = problem
    try:
        release = optimal(
            table, hierarchies, required, max_suppression=share, suppressed=suppressed, suppression=suppression
        )
    except ConfigurationError:
        return
    check_published(release, table, hierarchies, required)
    assert release.cell_loss.shape == (table.n_rows, len(table.quasi_identifiers))
    assert (release.cell_loss[release.suppressed] == 1).all()
    if suppressed == "drop":
        assert sorted([*release.rows, *release.suppressed]) == list(range(table.n_rows))
    else:
        assert release.rows.tolist() == list(range(table.n_rows))
        for row in release.suppressed:
            assert release.classes[row] == -1
            assert release.table["s"][row].as_py() is None
            assert {release.table[c.name][row].as_py() for c in table.quasi_identifiers} == {"*"}
    if suppression == "cell":
        by_row = optimal(table, hierarchies, required, max_suppression=share)
        assert set(release.suppressed) <= set(by_row.suppressed)
        assert release.cell_loss.mean() <= by_row.cell_loss.mean() + 1e-12


def test_a_suppressed_row_is_kept_only_as_a_class() -> None:
    table, hierarchies = toy()
    required = Requirements((KAnonymity(2),))
    assert node_of(optimal(table, hierarchies, required, max_suppression="0.125")) in ((2, 2), (1, 3))
    with fails("E100"):
        optimal(table, hierarchies, required, max_suppression="0.125", suppressed="keep")
    kept = samarati(table, hierarchies, required, max_suppression=0, suppressed="keep")
    assert len(kept.suppressed) == 0
    # Two records of different diseases are a class of their own that is 2-anonymous and 2-diverse.
    data = {"q": ["a", "a", "b", "b", "c", "d"], "s": ["x", "y"] * 3}
    small = Table.of(data, Roles((), ("q",), ("s",), ()))
    flat = {"q": Hierarchy.of("q", [(v, "*") for v in "abcd"])}
    both = Requirements((KAnonymity(2), DistinctDiversity(2, "s")))
    release = optimal(small, flat, both, max_suppression="0.34", suppressed="keep")
    assert release.suppressed.tolist() == [4, 5]
    assert release.table["s"].to_pylist() == data["s"]
    assert release.table["q"].to_pylist() == ["a", "a", "b", "b", "*", "*"]
    assert release.class_sizes.tolist() == [2, 2, 2]
    check_published(release, small, flat, both)


def test_cells_are_suppressed_fewest_first() -> None:
    data = {
        "a": ["1", "1", "1", "1", "2", "2"],
        "b": ["1", "1", "2", "2", "2", "1"],
        "c": ["1", "1", "1", "1", "1", "2"],
        "s": list("uvuvuv"),
    }
    table = Table.of(data, Roles((), ("a", "b", "c"), ("s",), ()))
    hierarchies = {name: Hierarchy.of(name, [("1", "*"), ("2", "*")]) for name in "abc"}
    required = Requirements((KAnonymity(2),))
    release = exhaustive(table, hierarchies, required, max_suppression="0.34", suppression="cell")
    assert node_of(release) == (0, 0, 0)
    # The last two agree in column a alone.
    assert release.table.select("abc").to_pylist()[4:] == [{"a": "2", "b": "*", "c": "*"}] * 2
    assert len(release.suppressed) == 0
    assert release.cell_loss.sum() == 4


def test_suppression_of_columns_is_recoding_with_flat_hierarchies() -> None:
    table, hierarchies = toy()
    flat = {n: Hierarchy.of(n, [(leaf, "*") for leaf in h.leaves]) for n, h in hierarchies.items()}
    release = optimal(table, flat, Requirements((KAnonymity(2),)))
    assert node_of(release) == (1, 1)


def test_a_column_at_level_0_keeps_its_type_and_one_spelling() -> None:
    data = {"age": ["7", "7.0", "7", "8", "08"], "n": [1, 1, 2, 2, 2], "s": list("abcde"), "name": list("vwxyz")}
    table = Table.of(data, Roles(("name",), ("age", "n"), ("s",), ()), kinds={"age": "numeric"})
    hierarchies = {
        "age": Hierarchy.of("age", [("7", "*"), ("8", "*")]),
        "n": Hierarchy.of("n", [("1", "*"), ("2", "*")]),
    }
    release = optimal(table, hierarchies, Requirements((KAnonymity(2),)), max_suppression="0.2")
    assert release.table.column_names == ["age", "n", "s"]
    assert release.table["age"].to_pylist() == ["7", "7", "8", "8"]
    assert release.table["n"].to_pylist() == [1, 1, 2, 2]
    assert release.n_classes == 2


def test_refusals() -> None:
    table, hierarchies = toy()
    two = Requirements((KAnonymity(2),))
    with fails("E100"):
        optimal(table, {"age": hierarchies["age"]}, two)
    with fails("E100"):
        optimal(table, hierarchies, two, max_suppression=1.5)
    with fails("E100"):
        optimal(table, hierarchies, two, loss="height")
    with fails("E100"):
        optimal(table, hierarchies, two, suppressed="hide")  # type: ignore[arg-type]
    with fails("E100"):
        optimal(table, hierarchies, two, suppression="column")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        optimal(table, hierarchies, Requirements((KAnonymity(9),)))
    bare = Table.of({"s": ["a", "b"]}, Roles((), (), ("s",), ()))
    with fails("E100"):
        optimal(bare, {}, two)


def test_maximal_suppression_is_exact_in_decimals() -> None:
    # 0.29 · 100 is 28.999… in binary floating point.
    data = {"q": [str(i) for i in range(29)] + ["x"] * 71, "s": ["a", "b"] * 50}
    table = Table.of(data, Roles((), ("q",), ("s",), ()))
    hierarchy = {"q": Hierarchy.of("q", [(v, "*") for v in dict.fromkeys(data["q"])])}
    assert len(optimal(table, hierarchy, Requirements((KAnonymity(2),)), max_suppression=0.29).suppressed) == 29


def test_pruning_stays_sound_where_merging_a_good_class_makes_a_bad_one() -> None:
    # A class (1, 1) is entropy-2-diverse, (10, 0) is not: 10 violators; merged (11, 1): 12 violators.
    data = {"q": ["a"] * 2 + ["b"] * 10, "s": ["x", "y"] + ["x"] * 10}
    table = Table.of(data, Roles((), ("q",), ("s",), ()))
    hierarchy = {"q": Hierarchy.of("q", [("a", "*"), ("b", "*")])}
    required = Requirements((KAnonymity(1), EntropyDiversity(2, "s")))
    for algorithm in (samarati, incognito, optimal, datafly, exhaustive):
        release = algorithm(table, hierarchy, required, max_suppression="0.84")
        assert node_of(release) == (0,)
        assert release.suppressed.tolist() == list(range(2, 12))


def test_models_that_are_asked_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    table, hierarchies = toy()
    required = Requirements((KAnonymity(2), EntropyDiversity(2, "disease")))
    wanted = [node_of(optimal(table, hierarchies, required, max_suppression=s / 8)) for s in range(5)]
    monkeypatch.setattr(examination, "MOST_CELLS", 1)
    assert [node_of(optimal(table, hierarchies, required, max_suppression=s / 8)) for s in range(5)] == wanted


def test_a_table_too_wide_for_one_word_of_keys() -> None:
    rng = np.random.default_rng(1)
    n, d = 60, 8
    data = {f"q{j}": [f"{v:09d}" for v in rng.integers(0, 10**9, n) // 10**8 * 10**8] for j in range(d)}
    leaves = {j: [f"{v:09d}" for v in range(0, 10**9, 10**6)] for j in range(d)}
    table = Table.of({**data, "s": ["a", "b"] * 30}, Roles((), tuple(data), ("s",), ()))
    hierarchies = {f"q{j}": Hierarchy.of(f"q{j}", [(v, v[:1], "*") for v in leaves[j]]) for j in range(d)}
    required = Requirements((KAnonymity(3),))
    release = optimal(table, hierarchies, required, max_suppression="0.5")
    check_published(release, table, hierarchies, required)
