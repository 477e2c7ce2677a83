"""`comine simulate` of the task `align`: a number as the result, and what each party's node would keep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

import comine as api
from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.errors import fails

pytestmark = pytest.mark.turn(2)

IDS = {"north": ["p1", "p2", "p3"], "south": ["p3", "p2", "p9"], "east": ["p7", "p3", "p2", "p1"]}


def write(folder: Path, mode: str, ids: dict[str, list[str]] = IDS, more: str = "") -> list[str]:
    """Writes tables that all have a column `age`, and `job.toml`; the arguments that name the files."""
    (folder / "job.toml").write_text(
        f'[job]\nname = "shared"\ntask = "align"\nparties = {json.dumps(list(ids))}\ndataset = "people"\n'
        f'partition = "vertical"\n{more}\n[align]\nmode = "{mode}"\n'
    )
    for name, own in ids.items():
        (folder / f"{name}.csv").write_text("id,age\n" + "".join(f"{person},7\n" for person in own))
    return [word for name in ids for word in ("--party", f"{name}={name}.csv")]


def positions(out: Path, parties: Sequence[str]) -> dict[str, dict[str, int]]:
    found = {}
    for party in parties:
        kept = pq.read_table(out / "parties" / party / "alignment.parquet")
        assert kept.column_names == ["id", "position"]
        found[party] = dict(zip(kept["id"].to_pylist(), kept["position"].to_pylist(), strict=True))
    return found


def result_of(out: Path) -> dict[str, object]:
    contents: dict[str, object] = json.loads((out / "result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    return contents


def test_an_intersection(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, "intersection"), "--out", "out")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert "task align: 2 rows in common of 3 parties; written to out" in ran.err
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"result.json", "report.html", "manifest.json", "parties"}
    contents = result_of(out)
    assert (contents["n_rows"], contents["positions"], contents["strategy"]) == (2, None, "intersection")
    assert (contents["n_itemsets"], contents["counted"]) == (None, None)
    found = positions(out, tuple(IDS))
    assert found["north"] == found["south"] == found["east"]
    assert sorted(found["north"].items()) in ([("p2", 0), ("p3", 1)], [("p2", 1), ("p3", 0)])
    page = (out / "report.html").read_text()
    assert "rows in common" in page
    assert "result went to" not in page


def test_a_union_tells_positions_and_not_how_many_rows_are_common(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, "union"), "--out", "out")
    assert ran.code == 0, ran.err
    assert "rows in common" not in ran.err
    contents = result_of(tmp_path / "out")
    assert contents["n_rows"] is None
    assert contents["positions"] == 3 * 64  # of each party the least size class
    assert f"task align: {contents['positions']} positions of rows of 3 parties" in ran.err
    found = positions(tmp_path / "out", tuple(IDS))
    assert {party: set(own) for party, own in found.items()} == {party: set(own) for party, own in IDS.items()}
    assert found["north"]["p2"] == found["south"]["p2"] == found["east"]["p2"]
    assert "positions of rows" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize("mode", ["intersection", "cardinality"])
def test_nothing_in_common_is_a_result(comine: Comine, tmp_path: Path, mode: str) -> None:
    parties = write(tmp_path, mode, {"north": ["1", "2"], "south": ["3"]})
    ran = comine("simulate", "job.toml", *parties)
    assert (ran.code, ran.out) == (0, "n_rows\n0\n")
    assert "task align: 0 rows in common of 2 parties" in ran.err
    told = comine("simulate", "job.toml", *parties, "--json", "--out", "out")
    assert json.loads(told.out)["n_rows"] == result_of(tmp_path / "out")["n_rows"] == 0
    assert (tmp_path / "out/parties").is_dir() == (mode == "intersection")


def test_an_earlier_result_is_replaced_and_nothing_else(comine: Comine, tmp_path: Path) -> None:
    for mode, kept in (("intersection", True), ("cardinality", False), ("intersection", True)):
        assert comine("simulate", "job.toml", *write(tmp_path, mode), "--out", "out").code == 0
        assert (tmp_path / "out/parties/north/alignment.parquet").exists() == kept
    (tmp_path / "out/parties/north/mine.txt").write_text("not comine's")
    ran = comine("simulate", "job.toml", *write(tmp_path, "intersection"), "--out", "out")
    assert ran.code == 10
    assert "out holds files that are not an earlier result" in ran.err
    assert (tmp_path / "out/parties/north/mine.txt").exists()


def test_from_python(tmp_path: Path) -> None:
    write(tmp_path, "intersection")
    result = api.simulate(tmp_path / "job.toml", {name: tmp_path / f"{name}.csv" for name in IDS}, format="csv")
    assert (result.n_rows, result.positions) == (2, None)
    assert set(result.alignments) == set(IDS)
    assert repr(result) == "Result('shared', align, 3 parties, 2 rows in common)"
    assert "rows in common" in result._repr_html_()
    assert ".itemsets()" not in result._repr_html_()
    with fails("E100"):
        result.itemsets()


def test_whom_the_parties_trust_with_shares_means_nothing_here(comine: Comine, tmp_path: Path) -> None:
    parties = write(tmp_path, "intersection")
    with (tmp_path / "job.toml").open("a") as file:
        file.write('[trust]\ncompute = ["north", "south"]\n')
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert '[trust] compute means nothing with task = "align"' in ran.err
