"""Estimators: as scikit-learn has them, in the library of their input, and the same releases as the functions."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from anonymize.estimators import (
    Anonymizer,
    Condensation,
    FullDomain,
    IdentityReplacement,
    Mdav,
    Mondrian,
    SensitiveClustering,
)
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.builders import flat, intervals
from anonymize.models import DistinctDiversity, EntropyDiversity, KAnonymity, Requirements, SensitiveLevels
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.uniqueness import DisclosureWarning
from tests.errors import fails

pytestmark = pytest.mark.turn(5)

ROLES = Roles(identifiers=("name",), quasi_identifiers=("age", "sex"), sensitive=("disease",))
NUMBERS = Roles(identifiers=("name",), quasi_identifiers=("age",), insensitive=("sex", "disease"))
TREES = {"age": intervals(range(100), (10, 20, 40), name="age"), "sex": flat(("m", "f"), name="sex")}
LEVELS = SensitiveLevels(2, (("flu",), ("HIV", "cancer")), "disease", (0.2, 0.8))
FRAME = pd.DataFrame(
    {
        "name": [f"p{i}" for i in range(40)],
        "age": [20 + i * 7 % 50 for i in range(40)],
        "sex": ["mf"[i // 3 % 2] for i in range(40)],
        "disease": [("flu", "HIV", "cancer")[i * 5 % 3] for i in range(40)],
    },
    index=[f"row {i}" for i in range(40)],
)
ALL = [
    *(FullDomain(ROLES, TREES, k=3, algorithm=name) for name in ("optimal", "incognito", "samarati", "datafly")),
    FullDomain(ROLES, TREES, models=[KAnonymity(3), DistinctDiversity(2, "disease")], max_suppression="0.1"),
    Mondrian(ROLES, k=3),
    Mondrian(ROLES, k=3, mode="hierarchical", hierarchies=TREES, publish="centres"),
    Mdav(NUMBERS, 3),
    SensitiveClustering(ROLES, 4, 2, LEVELS, seed=1),
    SensitiveClustering(ROLES, 4, 2, algorithm="gpkc", options={"loss": "generalisation"}, seed=1),
    Condensation(NUMBERS, 5, factor=2, seed=1),
    IdentityReplacement(NUMBERS, {"age": 5}, options={"tries": 50}, seed=1),
]


def named(estimator: Anonymizer) -> str:
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_an_estimator_releases_what_it_promises(estimator: Anonymizer) -> None:
    fitted = clone(estimator)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(fitted)
    found = fitted.fit_transform(FRAME)
    check_is_fitted(fitted)
    assert isinstance(found, pd.DataFrame)
    assert "name" not in found.columns
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (4, list(FRAME.columns))
    release = fitted.release_
    assert len(found) == release.table.num_rows
    if release.rows is not None:
        assert list(found.index) == list(FRAME.index[release.rows])
    if release.classes is not None:
        quasi = list(fitted.roles.quasi_identifiers)
        assert min(Counter(map(tuple, found[quasi].to_numpy())).values()) >= 3
        assert release.class_sizes.min() >= 3


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_parameters_are_those_of_the_constructor(estimator: Anonymizer) -> None:
    parameters = estimator.get_params()
    again = type(estimator)(**parameters)
    assert all(again.get_params()[name] is value for name, value in parameters.items())
    assert again.set_params(missing="drop") is again
    assert again.get_params()["missing"] == "drop"
    with fails("E100"):
        again.set_params(kk=3)
    assert repr(estimator).startswith(f"{named(estimator)}(roles=")


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_arrow_gives_arrow_with_the_same_rows(estimator: Anonymizer) -> None:
    arrow = clone(estimator).fit_transform(pa.Table.from_pandas(FRAME, preserve_index=False))
    assert isinstance(arrow, pa.Table)
    pandas = clone(estimator).fit_transform(FRAME)
    assert arrow.to_pandas().to_dict("list") == pandas.to_dict("list")


def test_polars_gives_polars() -> None:
    polars = pytest.importorskip("polars")
    found = Mondrian(ROLES, k=3).fit_transform(polars.from_pandas(FRAME))
    assert isinstance(found, polars.DataFrame)


def test_the_release_is_that_of_the_function() -> None:
    estimator = FullDomain(ROLES, TREES, k=4, max_suppression="0.1").fit(FRAME)
    release = optimal(Table.of(FRAME, ROLES), TREES, Requirements((KAnonymity(4),)), max_suppression="0.1")
    assert estimator.release_.table.equals(release.table)
    assert estimator.node_ == release.node


def test_a_step_of_a_pipeline() -> None:
    steps = make_pipeline(FullDomain(ROLES, TREES, k=3), FunctionTransformer(lambda frame: frame.assign(more=1)))
    found = clone(steps).fit_transform(FRAME)
    assert list(found.columns) == ["age", "sex", "disease", "more"]


def test_a_seed_repeats_draws() -> None:
    once, twice = (Condensation(NUMBERS, 5, seed=3).fit_transform(FRAME) for _ in range(2))
    assert once.equals(twice)
    assert not once.equals(Condensation(NUMBERS, 5, seed=4).fit_transform(FRAME))


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("mf")), min_size=1, max_size=30), st.integers(2, 5))
def test_further_rows_leave_all_classes_of_k(rows: list[tuple[int, str]], k: int) -> None:
    estimator = FullDomain(ROLES, TREES, k=k, max_suppression="0.2").fit(FRAME)
    ages, sexes = zip(*rows, strict=True)
    names = [f"x{place}" for place in range(len(rows))]
    more = pd.DataFrame({"name": names, "age": ages, "sex": sexes, "disease": "flu"})
    found = estimator.transform(more)
    joined = pd.concat([estimator.release_.table.to_pandas(), found])
    assert min(Counter(zip(joined["age"], joined["sex"], strict=True)).values()) >= k
    known = set(zip(*(estimator.release_.table.column(name).to_pylist() for name in ("age", "sex")), strict=True))
    told = [
        (
            TREES["age"].label(estimator.node_["age"], age),
            TREES["sex"].label(estimator.node_["sex"], "mf".index(sex)),
        )
        for age, sex in rows
    ]
    levels = estimator.node_.values()
    texts = [(str(age), sex) if 0 in levels and age.isdigit() else (age, sex) for age, sex in told]
    kept = [place for place, text in enumerate(texts) if text in {(str(a), s) for a, s in known}]
    assert list(found.index) == kept


def test_rows_cannot_join_under_every_model() -> None:
    estimator = FullDomain(ROLES, TREES, k=3, models=[EntropyDiversity(1.5, "disease")])
    with fails("E100"):
        estimator.transform(FRAME)
    with fails("E100"):
        estimator.fit(FRAME).transform(FRAME)


WRONG: list[Anonymizer] = [
    FullDomain(ROLES, TREES, k=3, algorithm="magic"),  # type: ignore[arg-type]
    FullDomain(ROLES, TREES),
    FullDomain(ROLES, TREES, k=41),
    Mondrian(ROLES, k=3, mode="loose"),  # type: ignore[arg-type]
    Mdav(ROLES, 3),
    SensitiveClustering(ROLES, 3, 2),
    SensitiveClustering(ROLES, 3, 2, LEVELS, algorithm="slie"),  # type: ignore[arg-type]
    Condensation(ROLES, 3),
    IdentityReplacement(ROLES, {"age": 3}),
    Mondrian(Roles(quasi_identifiers=("age",)), k=2),
]


@pytest.mark.parametrize("estimator", WRONG, ids=lambda each: type(each).__name__)
def test_fit_checks_parameters(estimator: Anonymizer) -> None:
    with fails("E100"):
        estimator.fit(FRAME)


def test_rows_without_values_keep_the_index() -> None:
    gaps: Any = FRAME.assign(age=FRAME["age"].astype(float))
    gaps.loc["row 3", "age"] = np.nan
    found = Mondrian(ROLES, k=3, missing="drop").fit_transform(gaps)
    assert list(found.index) == [name for name in FRAME.index if name != "row 3"]


TELLING = FRAME.assign(badge=[f"b{i}" for i in range(40)], member=[f"m{i // 2}" for i in range(40)])


def asked(estimator: Anonymizer, **roles: tuple[str, ...]) -> Anonymizer:
    """An estimator with further columns."""
    own = estimator.roles
    more = {name: (*getattr(own, name), *roles.get(name, ())) for name in ("identifiers", "insensitive")}
    return clone(estimator).set_params(
        roles=Roles(more["identifiers"], own.quasi_identifiers, own.sensitive, more["insensitive"])
    )


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_a_column_that_tells_rows_apart_is_warned_of(estimator: Anonymizer) -> None:
    """Of condensation not: its records are synthetic, and have no such column."""
    told = asked(estimator, insensitive=("badge", "member"))
    if isinstance(estimator, Condensation):
        told.fit(TELLING)
        return
    with pytest.warns(DisclosureWarning) as caught:
        told.fit(TELLING)
    sentences = [str(each.message) for each in caught]
    least = max(2, getattr(estimator, "k", None) or 2, 3 if getattr(estimator, "models", ()) else 2)
    assert any(f'100 % of the rows have a value of "badge" that fewer than {least} rows' in each for each in sentences)
    assert any('a value of "member"' in each for each in sentences) == (least > 2)


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_persons_with_several_rows_are_warned_of(estimator: Anonymizer) -> None:
    told = asked(estimator, identifiers=("member",))
    with pytest.warns(
        DisclosureWarning, match=r'^Column "member" is an identifier, and 20 of its 20 values have several'
    ):
        told.fit(TELLING.drop(columns="badge"))


@given(st.lists(st.integers(0, 40), min_size=40, max_size=40) | st.permutations(range(40)))
def test_whoever_has_several_rows_is_warned_of_and_nobody_else(whose: list[int]) -> None:
    told = asked(Mondrian(ROLES, k=3), identifiers=("member",))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told.fit(FRAME.assign(member=whose))
    repeated, persons = sum(whose.count(each) > 1 for each in set(whose)), len(set(whose))
    first = f'Column "member" is an identifier, and {repeated} of its {persons}'
    assert [str(each.message).split(" values")[0] for each in caught] == ([first] if repeated else [])


def test_further_rows_are_looked_at_together_with_the_first() -> None:
    """A person of the first rows, and values that stand out among all of them."""
    recoding = FullDomain(ROLES, TREES, k=3).fit(FRAME)
    with pytest.warns(DisclosureWarning, match=r'"name" is an identifier, and 1 of its 40 values have several rows'):
        recoding.transform(FRAME.tail(1))
    recoding.transform(FRAME.tail(1).assign(name="somebody"))
