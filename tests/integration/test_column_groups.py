"""Parties that hold the same columns of different rows, as nodes that users run: the result of the pooled tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

import pytest

from mining.reference.pooled import brute_force
from tests.integration.processes import Organisations, command

pytestmark = pytest.mark.slow

ROWS = {
    "north": {"p1": {"smoker": "yes"}, "p2": {"smoker": "yes"}, "p3": {"smoker": "no"}, "p7": {"smoker": "yes"}},
    "south": {"p4": {"smoker": "yes"}, "p5": {"smoker": "no"}},
    "a": {"p1": {"marker": "high"}, "p4": {"marker": "high"}, "p5": {"marker": "low"}},
    "b": {"p2": {"marker": "high"}, "p3": {"marker": "low"}, "p8": {"marker": "low"}},
}
COMMON = ("p1", "p2", "p3", "p4", "p5")


@pytest.fixture(scope="module")
def organisations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    """A running federation whose nodes hold tables beside their baskets."""
    folder = tmp_path_factory.mktemp("organisations")
    made = Organisations.create(folder, {name: [["a"]] for name in ROWS})
    for name, rows in ROWS.items():
        (column,) = next(iter(rows.values()))
        lines = [f"{person},{cells[column]}\n" for person, cells in rows.items()]
        (folder / f"{name}.csv").write_text("".join([f"id,{column}\n", *lines]))
        with (folder / f"{name}.toml").open("a") as config:
            config.write(
                f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
            )
            if name == "b":
                config.write('[dataset.policy]\ncolumn_groups = "allow"\n')
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_the_result_is_that_of_the_pooled_tables(organisations: Organisations) -> None:
    folder = organisations.folder
    (folder / "job.toml").write_text(
        f'[job]\nname = "markers"\ntask = "itemsets"\nparties = {json.dumps(list(ROWS))}\ndataset = "people"\n'
        'partition = "vertical"\n[align]\nmode = "union"\n[groups]\nclinics = ["north", "south"]\nlabs = ["a", "b"]\n'
        "[itemsets]\nmin_support = 2\n"
    )
    planned = command("job", "plan", "job.toml", "--detail", "--federation", "federation.toml", cwd=folder)
    assert planned.code == 0, planned.err
    assert "in which group each is, not at which party" in " ".join(planned.out.split())
    ran = organisations.run("job.toml", "result")
    assert ran.code == 0, ran.err
    joined = [
        [f"{column}={cell}" for rows in ROWS.values() for column, cell in rows.get(person, {}).items()]
        for person in COMMON
    ]
    with (folder / "result" / "itemsets.csv").open(newline="") as file:
        found = {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in csv.DictReader(file)}
    assert found == {frozenset(itemset): count for itemset, count in brute_force(joined, 2).items()}
    assert json.loads((folder / "result" / "result.json").read_text())["n_rows"] == len(COMMON)
    assert "clinics: north and south; labs: a and b" in (folder / "result" / "report.html").read_text()
    verified = command("audit", "verify", "result", "state/south", "--ca", "pki/ca.crt", cwd=folder)
    assert verified.code == 0, verified
