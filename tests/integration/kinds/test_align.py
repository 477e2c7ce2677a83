"""The task `align` among nodes as users run them: a number for the coordinator, positions for each party alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest

from tests.integration.processes import Organisations, command

pytestmark = pytest.mark.turn(2)

IDS = {"north": ["p1", "p2", "p3"], "south": ["p3", "p2", "p9"], "east": ["p7", "p3", "p2", "p1"]}


@pytest.fixture(scope="module")
def organisations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    """A running federation whose nodes hold tables beside their baskets."""
    folder = tmp_path_factory.mktemp("organisations")
    made = Organisations.create(folder, {name: [["a"]] for name in IDS})
    for name, ids in IDS.items():
        (folder / f"{name}.csv").write_text("id,age\n" + "".join(f"{person},7\n" for person in ids))
        config = folder / f"{name}.toml"
        allowed = config.read_text().replace('tasks = ["itemsets", "rules"]', 'tasks = ["align", "itemsets"]')
        dataset = f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
        config.write_text(allowed + dataset)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "recipients"), [("intersection", '["coordinator", "south"]'), ("union", '["south"]')])
def test_the_coordinator_gets_a_number_and_each_party_its_positions(
    organisations: Organisations, mode: str, recipients: str
) -> None:
    folder = organisations.folder
    (folder / "job.toml").write_text(
        f'[job]\nname = "shared"\ntask = "align"\nparties = {json.dumps(list(IDS))}\ndataset = "people"\n'
        f'partition = "vertical"\nrecipients = {recipients}\n[align]\nmode = "{mode}"\n'
    )
    planned = command("job", "plan", "job.toml", "--federation", "federation.toml", "--detail", cwd=folder)
    assert planned.code == 0, planned.err
    assert "which of their own rows" in planned.out or "at which positions their own rows" in planned.out
    assert "cardinality of rows: set [align] mode" in planned.out
    ran = organisations.run("job.toml", mode)
    assert ran.code == 0, ran.err
    result = json.loads((folder / mode / "result.json").read_text())
    assert result["plan"] == {}  # nobody publishes rows, so the plan said the least alone
    assert {path.name for path in (folder / mode).iterdir()} == {"result.json", "report.html", "manifest.json"}
    assert result["n_rows"] == (2 if mode == "intersection" else None)
    assert (result["positions"] is None) == (mode == "intersection")
    job = result["job_id"]
    positions = {}
    for name, ids in IDS.items():
        path = folder / "state" / name / "alignments" / f"{job}.parquet"
        assert path.stat().st_mode & 0o777 == 0o600
        kept = pq.read_table(path)
        assert set(kept["id"].to_pylist()) == (set(ids) if mode == "union" else {"p2", "p3"})
        positions[name] = dict(zip(kept["id"].to_pylist(), kept["position"].to_pylist(), strict=True))
        shown = command("party", "show", f"{name}.toml", job, "--json", cwd=folder)
        assert json.loads(shown.out)["alignment"] == str(path)
        own = folder / "state" / name / "results" / job / "result.json"
        assert own.exists() == (name == "south")
    assert positions["north"]["p2"] == positions["south"]["p2"] == positions["east"]["p2"]
    assert positions["north"]["p3"] == positions["south"]["p3"] == positions["east"]["p3"]
    for again in (["job", "result", job[:12]], ["job", "report", job[:12], "--out", "again.html"]):
        assert command(*again, "--federation", "federation.toml", cwd=folder).code == 0
    verified = command("audit", "verify", mode, "state/south", "--ca", "pki/ca.crt", cwd=folder)
    assert verified.code == 0, verified


def test_a_plan_of_mining_over_columns_sets_the_engines_beside_one_another(organisations: Organisations) -> None:
    (organisations.folder / "job.toml").write_text(
        '[job]\nname = "ages"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "people"\n'
        'partition = "vertical"\n[itemsets]\nmin_support = 0.2\n[plan]\nrows = 12\nitems = 2\n'
    )
    planned = command("job", "plan", "job.toml", "--federation", "federation.toml", "--json", cwd=organisations.folder)
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    assert plan["n_rows"] == 12  # as the job says, since no party publishes its rows
    assert plan["batches"][0]["candidates"] == 2 * 2
    assert [each["name"] for each in plan["alternatives"]] == ["union of rows", "engine paillier", "engine replicated"]
    assert all(each["bytes_sent"] for each in plan["alternatives"])
