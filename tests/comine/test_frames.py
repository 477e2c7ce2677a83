"""The tables of a result as pandas, Arrow and mlxtend have them."""

from __future__ import annotations

import sys

import pandas as pd
import pyarrow as pa
import pytest

import comine
from tests.errors import fails

JOB = {
    "job": {"name": "w", "task": "rules", "parties": ["north", "south"], "dataset": "baskets"},
    "itemsets": {"min_support": 0.5},
    "rules": {"min_confidence": 0.5, "measures": ["confidence", "lift", "zhang"]},
}
DATA = {"north": [["bread", "milk"], ["bread"]], "south": [["bread", "milk"], ["tea"]]}


def mined() -> comine.Result:
    return comine.simulate(JOB, DATA, seed=1)


def test_columns_as_mlxtend_has_them() -> None:
    result = mined()
    itemsets, rules = result.itemsets("mlxtend"), result.rules("mlxtend")
    assert list(itemsets.columns) == ["support", "itemsets"]
    assert dict(zip(itemsets["itemsets"], itemsets["support"], strict=True)) == {
        frozenset({"bread"}): 0.75,
        frozenset({"milk"}): 0.5,
        frozenset({"bread", "milk"}): 0.5,
    }
    assert list(rules.columns) == [
        *("antecedents", "consequents", "antecedent support", "consequent support", "support"),
        *("zhangs_metric", "confidence", "lift"),
    ]
    (row,) = rules[rules["antecedents"] == frozenset({"milk"})].to_dict("records")
    assert row["consequents"] == frozenset({"bread"})
    assert (row["antecedent support"], row["consequent support"], row["confidence"]) == (0.5, 0.75, 1.0)


def test_what_is_not_disclosed_is_no_number() -> None:
    spec = {**JOB, "itemsets": {"min_support": 0.5, "disclose": "frequent"}, "rules": {"min_confidence": 0.5}}
    result = comine.simulate(spec, DATA, seed=1)
    assert result.itemsets("mlxtend")["support"].isna().all()
    assert result.rules("mlxtend")["antecedent support"].isna().all()


def test_tables_of_pandas_and_arrow() -> None:
    result = mined()
    assert isinstance(result.itemsets(), pd.DataFrame)
    assert result.itemsets("pandas").equals(result.itemsets())
    assert result.itemsets("arrow").equals(result.tables["itemsets"])
    assert result.rules("arrow").equals(result.tables["rules"])


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    result = mined()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(result.itemsets(), pa.Table)
    with fails("E100"):
        result.itemsets("mlxtend")


def test_another_form_is_refused() -> None:
    with fails("E100"):
        mined().itemsets("polars")  # type: ignore[call-overload]
