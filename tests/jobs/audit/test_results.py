"""A result folder holds what follows from the proposal and from what was signed; whatever else it says is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.audit.checks.across import Journal, journals
from jobs.audit.checks.results import check_result
from jobs.audit.checks.verification import verification
from jobs.audit.checks.verify import check_log
from jobs.audit.events import Released
from jobs.results.folder import write_result_folder
from jobs.results.record import Receipt
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from link.pki.trust import Trust
from tests.jobs.audit.kinds import JOBS, RULES, agreed
from tests.jobs.audit.world import PARTIES, World, weekly, with_result

pytestmark = pytest.mark.turn(6)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three parties that have found rules, and the coordinator's result."""
    return with_result(tmp_path_factory.mktemp("world"), weekly(rules=RULES))


@pytest.fixture
def copy(original: World, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original.folder / "result", tmp_path / "copy"))


def told(world: World) -> Mapping[str, Journal]:
    return journals([check_log(world.log(party), world.trust) for party in PARTIES])[0]


def findings(world: World, folder: Path) -> list[str]:
    """The same with the parties' logs and without."""
    alone = [finding.what for finding in check_result(folder, world.trust, {})]
    assert [finding.what for finding in check_result(folder, world.trust, told(world))] == alone
    return alone


def change(folder: Path, **values: Any) -> None:
    path = folder / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


# -- result.json -----------------------------------------------------------------------------------------------------
def test_an_honest_result_with_rules(original: World):
    assert pq.read_table(original.folder / "result" / "rules.parquet").num_rows > 10
    assert findings(original, original.folder / "result") == []


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("job", "monthly", "its name of the job is monthly, and that of the proposal is weekly"),
        ("task", "itemsets", "its task is itemsets, and that of the proposal is rules"),
        ("n_itemsets", 3, "its n_itemsets is 3, and 15 follows from what the parties signed"),
        ("n_itemsets", None, "its n_itemsets is null"),
        ("n_rules", 1, "its n_rules is 1"),
        ("n_rules", None, "its n_rules is null"),
        ("counted", False, "its counted is false, and true follows"),
        ("estimated", True, "its estimated is true, and false follows"),
        ("privacy", {"model": "local", "local_epsilon": 1, "epsilon": 1, "delta": 0, "n": 9, "bound": "b"}, "privacy"),
        ("engine_reason", "it is fast", "its reason for its engine is not the one that follows from the proposal"),
        ("disclosure", [], "its disclosure statement is not the one that follows from the proposal"),
        ("seed", 7, "it names a seed"),
        ("rules", [{"antecedent": ["a"]}], "it holds 'rules' itself"),
        ("consents", None, "it holds no consents"),
    ],
)
def test_an_account_that_was_changed(original: World, copy: Path, key: str, value: Any, what: str):
    change(copy, **{key: value})
    (found,) = findings(original, copy)
    assert what in found


def test_a_disclosure_statement_that_lacks_a_line(original: World, copy: Path):
    lines = json.loads((copy / "result.json").read_text())["disclosure"]
    change(copy, disclosure=lines[:-1])
    (found,) = findings(original, copy)
    assert found == "its disclosure statement is not the one that follows from the proposal"


def test_a_statement_in_the_words_of_another_version_is_said_so(original: World, copy: Path):
    contents = json.loads((copy / "result.json").read_text())
    change(copy, disclosure=contents["disclosure"][1:], software=contents["software"] | {"comine": "0.1"})
    (found,) = findings(original, copy)
    assert "it says that comine 0.1 wrote it: verify it with that version, too" in found


def test_a_party_that_was_cut_out_everywhere(original: World, copy: Path):
    contents = json.loads((copy / "result.json").read_text())
    contents["parties"].pop("east")
    contents["receipts"] = [receipt for receipt in contents["receipts"] if receipt["party"] != "east"]
    approvals = contents["consents"]["approvals"]
    contents["consents"]["approvals"] = [given for given in approvals if given["party"] != "east"]
    change(copy, **contents)
    assert findings(original, copy) == ["its parties are not those of the proposal"]


def test_a_job_of_another_version_is_said_so(original: World, copy: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(JobSpec, "canonical", lambda spec: b"{}")  # as of a version with another form
    (found,) = findings(original, copy)
    assert "cannot be read by this version of comine" in found


def test_what_rests_on_the_coordinator_alone_is_listed(original: World):
    (sealed,) = verification([], [original.folder / "result"], original.trust).sealed
    assert (sealed.name, "report.html" in sealed.alone) == ("analyst", True)
    assert verification([original.log("north")], [], original.trust).sealed == []


# -- tables ----------------------------------------------------------------------------------------------------------
def test_another_table_of_rules(original: World, copy: Path):
    (copy / "rules.csv").write_text("antecedent,consequent\n")
    assert findings(original, copy) == [
        "rules.csv does not hold what follows from the itemsets that the parties signed"
    ]


@pytest.mark.parametrize("name", ["rules.csv", "rules.parquet"])
def test_a_table_of_rules_that_is_gone(original: World, copy: Path, name: str):
    (copy / name).unlink()
    assert findings(original, copy) == [f"{name} is missing, and the job gives it"]


@pytest.mark.parametrize("at", ["confidence", "lift", "count", "support"])
def test_a_number_in_a_table_of_columns(original: World, copy: Path, at: str):
    table = pq.read_table(copy / "rules.parquet")
    column = table[at].to_pylist()
    place = table.schema.get_field_index(at)
    changed = pa.array([column[0] + 1, *column[1:]], table.schema.field(at).type)
    pq.write_table(table.set_column(place, at, changed), copy / "rules.parquet")
    assert findings(original, copy) == [
        "rules.parquet does not hold what follows from the itemsets that the parties signed"
    ]


def test_a_table_of_columns_that_is_none(original: World, copy: Path):
    (copy / "rules.parquet").write_bytes(b"PAR1")
    (found,) = findings(original, copy)
    assert found.startswith("rules.parquet cannot be read")


def test_rules_in_another_order_and_numbers_of_other_digits(original: World, copy: Path):
    head, first, second, *more = (copy / "rules.csv").read_text().splitlines(keepends=True)
    (copy / "rules.csv").write_text("".join([head, second, first, *more]))
    assert len(findings(original, copy)) == 1


def test_a_support_beside_a_signed_count(original: World, copy: Path):
    """The parties sign counts; what is written beside them follows from these."""
    head, first, *more = (copy / "itemsets.csv").read_text().splitlines(keepends=True)
    changed = ",".join([*first.split(",")[:-1], "0.99\n"])
    (copy / "itemsets.csv").write_text("".join([head, changed, *more]))
    assert findings(original, copy) == [
        "itemsets.csv does not hold what follows from the itemsets that the parties signed"
    ]


def test_rules_are_not_judged_by_itemsets_that_nobody_has_signed(original: World, copy: Path):
    for name in ("itemsets.csv", "itemsets.parquet"):
        (copy / name).unlink()
    found = findings(original, copy)
    assert len(found) == 2 * len(PARTIES)
    assert all("signed what is in it" in what for what in found)


def test_tables_that_the_job_does_not_give(original: World, copy: Path):
    (copy / "model.json").write_text("{}")
    assert findings(original, copy) == [
        "model.json is in the folder, and nobody has signed it: this job gives none here"
    ]


# -- a node's own copy -----------------------------------------------------------------------------------------------
def own_copy(tmp_path: Path) -> tuple[World, Path]:
    """The copy that south, a recipient, keeps of a result."""
    (tmp_path / "world").mkdir()
    world, spec = World(tmp_path / "world"), weekly(rules=RULES)
    job, ends = world.run(spec)
    world.logs["south"].append(Released.of(world.headers["south"], to="south", key=world.keys["south"]))
    run, header = ends["south"], world.headers["south"]
    result = Result(
        spec,
        job,
        run.session_id,
        run.outcome.n_rows,
        run.outcome.strategy,
        {"south": run.costs},
        {"south": Receipt(header.release, header.signature, header.certificate, run.receipts_from)},
        run.outcome.finding.canonical(),
    )
    write_result_folder(tmp_path / "own", result)
    return world, tmp_path / "own"


def test_the_log_of_a_node_holds_the_consents_of_its_own_copy(tmp_path: Path):
    world, folder = own_copy(tmp_path)
    assert check_result(folder, world.trust, told(world)) == []
    (finding,) = check_result(folder, world.trust, {})
    assert "give the log of south" in finding.what
    change(folder, n_rules=2)
    (finding,) = check_result(folder, world.trust, told(world))
    assert "its n_rules is 2" in finding.what


def test_a_coordinators_result_is_no_nodes_own_copy(original: World, copy: Path):
    contents = json.loads((copy / "result.json").read_text())
    receipts = [receipt for receipt in contents["receipts"] if receipt["party"] == "south"]
    change(copy, consents=None, parties={"south": contents["parties"]["south"]}, receipts=receipts)
    (finding,) = check_result(copy, original.trust, told(original))
    assert "records no such result for south itself" in finding.what


# -- other jobs ------------------------------------------------------------------------------------------------------
@pytest.mark.turn(8)
@pytest.mark.parametrize("kind", JOBS)
def test_results_of_all_kinds(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An honest one passes; with another name, without its statement and with another table it does not."""
    make, table = JOBS[kind]
    spec, data = make()
    authority, folder = Authority.create(), tmp_path / "result"
    write_result_folder(folder, agreed(spec, data, authority, monkeypatch))
    trust = Trust(authority.certificate_pem)

    def found() -> list[str]:
        return [finding.what for finding in check_result(folder, trust, {})]

    assert found() == []
    if table is not None:
        contents = (folder / table).read_bytes()
        (folder / table).write_bytes(contents[:-3])
        assert any(table.partition(".")[0] in what for what in found())
        (folder / table).unlink()
        assert any(table.partition(".")[0] in what for what in found())
        (folder / table).write_bytes(contents)
    change(folder, job="another", disclosure=[], n_rules=10_000)
    assert [what.split(" is ")[0] for what in found()] == [
        "its name of the job",
        "its disclosure statement",
        "its n_rules",
    ]
