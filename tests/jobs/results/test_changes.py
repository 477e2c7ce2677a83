"""What one result has that another has not."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from jobs.results.changes import MOST, Row, changes
from mining.itemsets import Itemsets
from mining.rules.association import association_rules


def itemsets(supports: dict[tuple[str, ...], float | None]) -> dict[str, pa.Table]:
    columns = {"itemset": [list(each) for each in supports], "support": list(supports.values())}
    schema = pa.schema({"itemset": pa.list_(pa.string()), "support": pa.float64()})
    return {"itemsets": pa.table(columns, schema)}


def test_what_appeared_vanished_and_changed() -> None:
    before = itemsets({("a",): 0.5, ("a", "b"): 0.3, ("c",): 0.2, ("d",): 0.1, ("e",): None})
    after = itemsets({("e",): None, ("a",): 0.5, ("a", "b"): 0.4, ("f", "g"): 0.3, ("d",): 0.4})
    (found,) = changes(before, after)
    assert (found.table, found.figures, found.same) == ("itemsets", ("support",), 2)
    assert found.appeared == (1, (Row((("f", "g"),), (None,), (0.3,)),))
    assert found.vanished == (1, (Row((("c",),), (0.2,), (None,)),))
    assert found.changed == (2, (Row((("d",),), (0.1,), (0.4,)), Row((("a", "b"),), (0.3,), (0.4,))))


def test_a_figure_that_was_not_opened_before_has_changed() -> None:
    (found,) = changes(itemsets({("a",): None}), itemsets({("a",): 0.5}))
    assert found.changed == (1, (Row((("a",),), (None,), (0.5,)),))


def test_rules_are_told_by_both_sides() -> None:
    levels = [(np.array([[0], [1]], np.int32), np.array([4, 2])), (np.array([[0, 1]], np.int32), np.array([2]))]
    found = Itemsets(("a", "b"), levels, 9)
    rules = association_rules(found, Decimal("0.1"), measures=("confidence", "lift"))
    table = {"rules": rules.to_arrow()}
    (same,) = changes(table, table)
    assert (same.figures, same.same, same.changed.number) == (("support", "confidence", "lift"), 2, 0)
    (gone,) = changes(table, {"rules": table["rules"].slice(1)})
    (row,) = gone.vanished.rows
    assert {row.sides} <= {(("a",), ("b",)), (("b",), ("a",))}


def test_results_without_tables_in_common_have_no_changes() -> None:
    assert changes({}, itemsets({("a",): 0.5})) == []
    (found,) = changes(itemsets({}), itemsets({(f"i{number}",): number / 1000 for number in range(200)}))
    assert (found.appeared.number, len(found.appeared.rows), found.appeared.rows[0].after) == (200, MOST, (0.199,))
