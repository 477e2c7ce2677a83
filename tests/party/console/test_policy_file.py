"""A node's file with other rules in it, and nothing else."""

from __future__ import annotations

import difflib
import tomllib
from decimal import Decimal
from typing import Any

import pytest

from party.console.policy_file import Place, rewritten
from tests.errors import fails

TEXT = """\
[policy]
approve = "manual"  # who
min_support = 0.1 # floor

# exceptions
[[policy.approval]]
decide = "auto"

# the shops
[[dataset]]
name = "baskets"
[dataset.privacy]
epsilon = 4

# the second
[[dataset]]
name = "people"
policy = { min_count = 5 }
[dataset.anonymization]
min_k = 2

# and more
[console]
listen = "127.0.0.1:1"
"""
POLICY, OWN, BUDGET, OTHER = ("policy",), ("dataset", 0, "policy"), ("dataset", 0, "privacy"), ("dataset", 1, "policy")
CHANGES: list[tuple[dict[Place, dict[str, Any]], list[str]]] = [
    (
        {POLICY: {"min_support": Decimal("0.05"), "withhold": ['a"\n[tls]', "b"]}},
        [
            "-min_support = 0.1 # floor",
            "+min_support = 0.05 # floor",
            '+withhold = ["a\\"\\n[tls]", "b"]',
        ],
    ),
    (
        {POLICY: {"approval": [{"decide": "refuse"}, {"decide": "auto", "parties": ["x"]}]}},
        ['+decide = "refuse"', "+", "+[[policy.approval]]", '+parties = ["x"]'],
    ),
    ({POLICY: {"approval": None}}, ["-[[policy.approval]]", '-decide = "auto"']),
    ({POLICY: {"approval": []}}, ["+approval = []", "-[[policy.approval]]", '-decide = "auto"']),
    (
        {OWN: {"approve": "auto", "columns": {"age": ["sensitive"]}}, BUDGET: {"delta": Decimal("1e-8")}},
        ["+delta = 1e-8", "+", "+[dataset.policy]", '+approve = "auto"', '+columns = {age = ["sensitive"]}'],
    ),
    (
        {OWN: {"approval": [{"decide": "refuse"}]}},
        ["+[dataset.policy]", "+", "+[[dataset.policy.approval]]", '+decide = "refuse"', "+"],
    ),
    ({BUDGET: {"epsilon": None}}, ["-epsilon = 4"]),
    ({OTHER: {"min_count": 6}}, ["-policy = { min_count = 5 }", "+policy = { min_count = 6 }"]),
    ({OTHER: {"min_count": None}}, ["-policy = { min_count = 5 }", "+policy = {  }"]),
]


@pytest.mark.parametrize(("changes", "lines"), CHANGES)
def test_a_change_touches_its_lines_alone(changes: dict[Place, dict[str, Any]], lines: list[str]) -> None:
    after = rewritten(TEXT.encode(), "north.toml", changes).decode()
    found = list(difflib.unified_diff(TEXT.splitlines(), after.splitlines(), n=0, lineterm=""))
    assert sorted(line for line in found if not line.startswith(("---", "+++", "@@"))) == sorted(lines)
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in TEXT.splitlines() if line.startswith("#")
    ]
    tomllib.loads(after)


def test_a_byte_order_mark_and_a_last_line_without_an_end_are_no_matter() -> None:
    data = b'\xef\xbb\xbf[[dataset]]\nname = "a"\n[policy]\napprove = "auto"'
    after = rewritten(data, "north.toml", {POLICY: {"min_count": 3}})
    assert after == data + b"\nmin_count = 3\n"


SCATTERED = """\
[policy.columns]
age = ["sensitive"]

[[dataset]]
name = "baskets"
items = [
    [2],
[1],  # not a header
]

# who
[party]
name = "north"
note = '''
[[dataset]]
'''

# the shops' own
[dataset.policy]  # of baskets
min_count = 5

[tls]
ca = "ca.crt"

# the second
[[dataset]]
name = "people"

# the end
[console]
"""


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({OWN: {"min_count": 7}}, ["-min_count = 5", "+min_count = 7"]),
        ({OTHER: {"min_count": 6}}, ["+[dataset.policy]", "+min_count = 6", "+"]),
        ({BUDGET: {"epsilon": 2}}, ["+[dataset.privacy]", "+epsilon = 2", "+"]),
        ({("policy", "columns"): {"age": None}}, ['-age = ["sensitive"]']),
        (
            {OWN: {"approval": [{"decide": "refuse"}]}},
            ["+[[dataset.policy.approval]]", '+decide = "refuse"', "+"],
        ),
    ],
)
def test_tables_that_stand_apart_stay_where_they_are(changes: dict[Place, dict[str, Any]], lines: list[str]) -> None:
    after = rewritten(SCATTERED.encode(), "north.toml", changes).decode()
    found = list(difflib.unified_diff(SCATTERED.splitlines(), after.splitlines(), n=0, lineterm=""))
    assert sorted(line for line in found if not line.startswith(("---", "+++", "@@"))) == sorted(lines)
    if OTHER in changes:
        assert 'name = "people"\n\n[dataset.policy]\nmin_count = 6\n\n# the end' in after


@pytest.mark.parametrize(
    "text",
    ["[policy]\n[tls]\n[policy.columns]\na = []\n", "[[dataset]]\n[policy]\n[[dataset]]\n"],
)
def test_what_stands_apart_is_no_matter_where_the_rules_are_elsewhere(text: str) -> None:
    after = rewritten(text.encode(), "north.toml", {POLICY: {"min_count": 3}}).decode()
    assert after == text.replace("[policy]\n", "[policy]\nmin_count = 3\n")


def test_a_table_behind_its_parts_is_changed_by_hand() -> None:
    with fails("E100"):
        rewritten(b"[policy.columns]\na = []\n[tls]\n[policy]\n", "north.toml", {POLICY: {"min_count": 3}})
