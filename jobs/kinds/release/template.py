"""The commented tables of a joint release."""

from __future__ import annotations

from typing import Final

TABLES: Final = """
[anonymize]
quasi_identifiers = ["age", "sex"]  # these are generalised
sensitive = ["diagnosis"]       # these are published as they are, and models look at them
# insensitive = []              # these too, without a model; all other columns do not leave
max_suppression = 0.02          # the greatest share of the rows that is left out
{more}
[anonymize.model]
k = 5                           # rows that look alike, at least
# p = 2                         # different sensitive values among them

[anonymize.columns]
age = {{ kind = "numeric" }}
diagnosis = {{ values = ["cold", "flu", "ulcer"] }}

[anonymize.hierarchies]         # how each quasi-identifier may be generalised
age = {{ builder = "intervals", widths = [10, 50], range = [0, 99] }}
sex = [["f", "*"], ["m", "*"]]  # or the path of a file of CSV, a leaf a line
"""
"""`more` are keys of [anonymize] of one way in which data are parted."""
