"""A small table, and how a node offers it for queries."""

from __future__ import annotations

STAFF = """id,age,city,salary,ill
p0,21,Bern,100,0
p1,25,Basel,250,0
p2,29,Bern,420,1
p3,34,Bern,310,0
p4,38,Basel,120,1
p5,45,Basel,99,0
p6,52,Bern,400,0
p7,58,Basel,260,1
"""

DATASET = """
[[dataset]]
name = "staff"
kind = "table"
source = "staff.csv"
format = "csv"
[dataset.queries]
public = ["age", "city"]
columns = { salary = ["sum", "max"], ill = ["count"] }
min_size = 2
max_overlap = 1
"""
