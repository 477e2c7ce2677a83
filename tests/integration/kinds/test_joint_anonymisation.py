"""Jobs that anonymise among nodes as users run them: planned, approved by policy, run, and verified afterwards."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from anonymize.hierarchies.files import rows_of
from anonymize.verifier import verify
from jobs.report.job_file import job_file
from tests.examples import in_turn
from tests.integration.processes import Organisations, command
from tests.mining.joint.anonymisation.anonymisation_jobs_world import RELEASED, job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, Cells, hierarchies, people

ROWS = 60


def organisations(folder: Path, cells: Cells) -> Organisations:
    """A federation whose nodes hold tables beside their baskets; they ask for k of at least 3. Those of all but the
    first lie in blocks."""
    made = Organisations.create(folder, {name: [["a"]] for name in PARTIES[:3]})
    for place, party in enumerate(PARTIES[:3]):
        own = {name: column[20 * place : 20 * place + 20] for name, column in cells.items()}
        with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
        config = folder / f"{party}.toml"
        rules = f'tasks = ["anonymize"]\nmin_count = 3\ncolumns = {RELEASED}'
        allowed = config.read_text().replace('tasks = ["itemsets", "rules"]', rules)
        dataset = f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{party}.csv"\nformat = "csv"\nid = []\n'
        config.write_text(allowed + dataset + 'engine = "processes"\n' * (place > 0))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "recipients"),
    in_turn([("optimal", ("coordinator", "south")), ("mondrian", ("all",)), ("samarati", ("south",))], 3),
)
def test_a_release_among_nodes(tmp_path: Path, algorithm: str, recipients: tuple[str, ...]) -> None:
    more = {} if algorithm == "mondrian" else {"max_suppression": "0.1"}
    spec = job(algorithm=algorithm, recipients=recipients, insider_k=2, **more)
    made = organisations(tmp_path, people(ROWS, 3))
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    (tmp_path / "small.toml").write_text(job_file(job(model={"k": 2})), encoding="utf-8")
    try:
        made.start()
        planned = command("job", "plan", "job.toml", "--federation", "federation.toml", "--detail", cwd=tmp_path)
        assert planned.code == 0, planned.err
        what = "How often regions are cut" if algorithm == "mondrian" else "Which nodes are examined"
        assert f"{what} depends on the rows" in " ".join(planned.out.split())
        ran = made.run("job.toml")
        assert ran.code == 0, ran.err
        refused = command("job", "run", "small.toml", "--federation", "federation.toml", "--out", "no", cwd=tmp_path)
        assert refused.code == 30
        assert "classes of at least 3 rows" in " ".join(refused.err.split())
    finally:
        made.stop()
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert result["n_rows"] == ROWS
    assert [path.parts[-3] for path in sorted(tmp_path.glob("state/*/blocks/people"))] == ["east", "south"]
    tables = [word for party in PARTIES[:3] for word in ("--party", f"{party}={party}.csv")]
    pooled = command("simulate", "job.toml", *tables, "--out", "here", cwd=tmp_path)  # with all rows in memory
    assert pooled.code == 0, pooled.err
    to_coordinator = recipients != ("south",)
    assert (tmp_path / "out/release.csv").exists() == to_coordinator
    own = tmp_path / "state" / "south" / "results" / result["job_id"]
    assert verify(own).ok
    assert (own / "release.json").read_bytes() == (tmp_path / "here/release.json").read_bytes()
    assert (own.parents[2] / "east/results" / result["job_id"]).exists() == (recipients == ("all",))
    assert command("audit", "verify", "out", "state/south", "--ca", "pki/ca.crt", cwd=tmp_path).code == 0
    if not to_coordinator:
        return
    assert verify(tmp_path / "out").ok
    assert (own / "release.json").read_bytes() == (tmp_path / "out/release.json").read_bytes()
    again = ("job", "result", result["job_id"][:12], "--federation", "federation.toml", "--out", "again")
    assert command(*again, cwd=tmp_path).code == 0
    assert (tmp_path / "again/release.csv").read_bytes() == (tmp_path / "out/release.csv").read_bytes()
    told = json.loads((tmp_path / "out/release.json").read_text())
    changed = {**told, "n_rows": ROWS + 1}
    (tmp_path / "out/release.json").write_text(json.dumps(changed, sort_keys=True, separators=(",", ":")))
    verified = command("audit", "verify", "out", "--ca", "pki/ca.crt", cwd=tmp_path)
    assert verified.code != 0
    assert "release.json" in verified.out + verified.err


@pytest.mark.slow
def test_one_release_of_the_same_rows_leaves_unless_the_owner_allows_more(tmp_path: Path) -> None:
    made = organisations(tmp_path, people(ROWS, 3))
    jobs = {
        "impossible": job(model={"k": ROWS + 1}),
        "first": job(insider_k=2),
        "coarser": job(insider_k=2, model={"k": 5}),
        "other": job(
            insider_k=2,
            quasi_identifiers=["age", "sex"],
            hierarchies={n: list(map(list, rows_of(each))) for n, each in hierarchies().items() if n != "town"},
        ),
        "diverse": job(insider_k=2, model={"k": 3, "l": [{"value": 2}]}),
    }
    for name, spec in jobs.items():
        (tmp_path / f"{name}.toml").write_text(job_file(spec), encoding="utf-8")

    def ask(what: str, name: str) -> tuple[int, str]:
        more = ("--out", f"out-{name}") if what == "run" else ("--detail",)
        ran = command("job", what, f"{name}.toml", "--federation", "federation.toml", *more, cwd=tmp_path)
        return ran.code, " ".join((ran.out + ran.err).split())

    try:
        made.start()
        code, told = ask("run", "impossible")
        assert code == 10, told
        code, told = ask("plan", "first")
        assert "This would be release 1 of the rows of north, south and east. Releases combine" in told
        assert ask("run", "first")[0] == 0
        made.stop()
        made.start()
        for name in ("coarser", "other", "diverse", "first"):
            for what in ("plan", "run"):
                code, told = ask(what, name)
                assert (code, "(rule max_releases)" in told) == (30, True), told
    finally:
        made.stop()
    assert "they combine" in (tmp_path / "out-first/report.html").read_text(encoding="utf-8")
