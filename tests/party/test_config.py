from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from jobs.federation import Federation
from link.errors import ConfigurationError
from party.config import PartyConfig
from tests.errors import fails
from tests.party.files import federation_toml, party_toml


def load(folder: Path, contents: str) -> PartyConfig:
    path = folder / "north.toml"
    path.write_text(contents)
    return PartyConfig.load(path)


def test_reads_the_whole_file_with_paths_beside_it(tmp_path: Path) -> None:
    config = load(tmp_path, party_toml("north", policy="min_support = 0.001\nmax_length = 5\npeers = ['south']"))
    assert config.party.name == "north"
    assert config.party.state_dir == tmp_path / "state" / "north"
    assert config.party.federation == tmp_path / "federation.toml"
    assert config.tls.key == tmp_path / "pki" / "north.key"
    assert config.datasets["baskets"].source == str(tmp_path / "north.dat")
    assert config.policy.min_support == Decimal("0.001")
    assert config.policy.peers == ("south",)


@pytest.mark.parametrize("value", ["16", "0", '"many"'])
def test_a_rule_that_has_no_meaning_any_more_is_read_over(tmp_path: Path, value: str) -> None:
    assert load(tmp_path, party_toml("north", policy=f"max_unions = {value}")) == load(tmp_path, party_toml("north"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("sqlite:///baskets.db", "sqlite:///{folder}/baskets.db"),
        ("duckdb:////var/baskets.db", "duckdb:////var/baskets.db"),
        ("postgres://db.example/shop", "postgres://db.example/shop"),
    ],
)
def test_databases(tmp_path: Path, source: str, expected: str) -> None:
    contents = party_toml("north", dataset='query = "select id, item from sales"')
    contents = contents.replace('"north.dat"', f'"{source}"').replace('"basket"', '"sql"')
    assert load(tmp_path, contents).datasets["baskets"].source == expected.format(folder=tmp_path)


def table_toml(more: str) -> str:
    contents = party_toml("north", dataset=more)
    return contents.replace('"transactions"', '"table"').replace('"basket"', '"csv"')


def test_a_table_has_one_column_of_ids_or_several(tmp_path: Path) -> None:
    assert load(tmp_path, table_toml("")).datasets["baskets"].id == ("id",)
    assert load(tmp_path, table_toml('id = "patient"')).datasets["baskets"].id == ("patient",)
    assert load(tmp_path, table_toml('id = ["ward", "bed"]')).datasets["baskets"].id == ("ward", "bed")
    for more in [
        'id = ["a", "a"]',
        'item = "article"',
    ]:
        with fails("E100"):
            load(tmp_path, table_toml(more))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "north"', 'name = "North Pole"', "[party] name: "),
        ('listen = "127.0.0.1:7101"', 'listen = "7101"', "[party] listen: '7101' must have the form HOST:PORT"),
        ('listen = "127.0.0.1:7101"', 'port = 1\nlisten = "a:1"', "[party] port: is not a known key"),
        ('listen = "127.0.0.1:7101"', 'listen = "127.0.0.1:70000"', "ports go up to 65535"),
        ("[tls]", "max_running = 0\n[tls]", "[party] max_running: "),
        ('key = "pki/north.key"', "", "[tls] key: is missing"),
        ('kind = "transactions"', 'kind = "table"', 'kind = "table" is read from csv, parquet or sql, not from format'),
        ('format = "basket"', 'format = "long"\nid = ["a", "b"]', 'several columns of ids need kind = "table"'),
        ('format = "basket"', 'format = "long"\nid = []', '[dataset] 0: id = [] needs kind = "table"'),
        ('format = "basket"', 'format = "long"\nid = 7', "[dataset.0] id: must be the name of a column, or a list"),
        ('kind = "transactions"', 'kind = "graph"', "[dataset.0] kind: "),
        ('format = "basket"', 'format = "xml"', "[dataset.0] format: "),
        ('format = "basket"', 'format = "sql"', "needs a query"),
        ('format = "basket"', 'format = "sql"\nquery = "select 1"', "needs a query, and as source a URL sqlite"),
        ('format = "basket"', 'format = "basket"\nquery = "select 1"', 'a query needs format = "sql"'),
        ('format = "basket"', 'format = "parquet"\nseparator = ","', "a separator means nothing"),
        ('format = "basket"', 'format = "csv"\nseparator = "ab"', "separator must be one character"),
        ('"north.dat"', '"sqlite:///a.db"', 'needs format = "sql"'),
        ('"north.dat"', '"postgres://ann:hunter2@db/shop"', "[dataset] 0: the source holds a password"),
        ('"north.dat"', '"postgres://db/shop?password=hunter2"', "[dataset] 0: the source holds a password"),
        ('"north.dat"', '"mongodb://ann:hunter2@db/shop"', "begins with a scheme that is not read here"),
        ('"north.dat"', '"north.dat"\npassword_env = "WORD"', "mean nothing to this source"),
        (
            'source = "north.dat"\nformat = "basket"',
            'source = "postgres://db"\nformat = "sql"\nquery = "SELECT 1"\npassword_env = "A"\npassword_file = "b"',
            "exclude each other",
        ),
        ('name = "baskets"', 'name = "../baskets"', "[dataset.0] name: '../baskets' cannot be a name: use 1 to 63"),
        (
            "[policy]",
            '[[dataset]]\nname = "baskets"\nkind = "transactions"\nsource = "b"\nformat = "csv"\n[policy]',
            "twice",
        ),
        ('approve = "auto"', 'approve = "never"', "[policy] approve: "),
        ('approve = "auto"', "", "[policy] approve: is missing"),
        (
            'tasks = ["itemsets", "rules"]',
            "tasks = []",
            "[policy] tasks: names nothing, so no job could ever run; name",
        ),
        ('tasks = ["itemsets", "rules"]', 'tasks = ["sum"]', "[policy.tasks] 0: "),
        ('approve = "auto"', 'approve = "auto"\npeers = []', "names nothing"),
        ('approve = "auto"', 'approve = "auto"\ndatasets = ["sales"]', "no [[dataset]] has that name"),
        ('approve = "auto"', 'approve = "auto"\nmin_support = 5', "must be a fraction above 0 and at most 1"),
        ('approve = "auto"', 'approve = "auto"\nmin_support = 0.0', "must be a fraction above 0 and at most 1"),
        ('approve = "auto"', 'approve = "auto"\nmin_support = nan', "must be a fraction above 0 and at most 1"),
        ('approve = "auto"', 'approve = "auto"\nmin_count = 0', "[policy] min_count: "),
        ('approve = "auto"', 'approve = "auto"\nmin_parties = 1', "[policy] min_parties: "),
        ('approve = "auto"', 'approve = "auto"\nmin_jobs = 3', "[policy] min_jobs: is not a known key"),
        ('approve = "auto"', 'approve = "auto"\nmax_jobs_period = "1d"', "max_jobs_period limits nothing"),
        ('approve = "auto"', 'approve = "auto"\nmax_jobs = 1\nmax_jobs_period = "a day"', 'such as "90s", "30m"'),
        ('approve = "auto"', 'approve = "auto"\nmax_expiry = "31d"', "must be at most 30 days"),
        ('approve = "auto"', 'approve = "auto"\nparty_sets = "free"', "[policy] party_sets: "),
        ('approve = "auto"', 'approve = "auto"\nwithhold = [""]', "[policy.withhold] 0: "),
        ('approve = "auto"', 'approve = "auto"\ncoordinators = []', "names nothing"),
        (
            'tasks = ["itemsets", "rules"]',
            'tasks = ["rules"]\n[[policy.approval]]\ntasks = ["rules"]',
            "decide: is missing",
        ),
        ('tasks = ["itemsets", "rules"]', 'tasks = ["rules"]\n[[policy.approval]]\ndecide = "maybe"', "decide: "),
        (
            'tasks = ["itemsets", "rules"]',
            'tasks = ["rules"]\n[[policy.approval]]\ndecide = "auto"\ndatasets = ["sales"]',
            "no [[dataset]] has that name",
        ),
        ("[policy]", "[dataset.policy]\ndatasets = ['baskets']\n[policy]", "datasets: is not a known key"),
        ("[policy]", "[dataset.policy]\nmax_jobs_period = '2h'\n[policy]", "for the dataset 'baskets'"),
        ("[policy]", "[policy", "is not valid TOML"),
    ],
)
def test_a_fault_is_one_sentence_with_file_and_key(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    contents = party_toml("north")
    assert old in contents
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, contents.replace(old, new, 1))
    message = caught.value.message
    assert message.startswith(str(tmp_path / "north.toml"))
    assert sentence in message
    assert "\n" not in message
    assert "hunter2" not in message
    assert "more)" not in message  # one fault is told as one


def test_a_datasets_own_rules_take_the_place_of_the_general_ones(tmp_path: Path) -> None:
    own = """
[dataset.policy]
approve = "manual"
min_support = 0.1
withhold = []
[[dataset.policy.approval]]
coordinators = ["analyst"]
decide = "auto"
[[dataset]]
name = "visits"
kind = "transactions"
source = "visits.dat"
format = "basket"
"""
    rules = 'min_support = 0.01\nmin_count = 5\nwithhold = ["hiv*"]'
    config = load(tmp_path, party_toml("north", dataset=own, policy=rules))
    general, baskets = config.policy_of("visits"), config.policy_of("baskets")
    assert general == config.policy == config.policy_of("unknown")
    assert (general.approve, general.min_support, general.withhold) == ("auto", Decimal("0.01"), ("hiv*",))
    assert (baskets.approve, baskets.min_support, baskets.withhold) == ("manual", Decimal("0.1"), ())
    assert (baskets.min_count, baskets.tasks) == (5, general.tasks)
    assert [rule.decide for rule in baskets.approval] == ["auto"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with fails("E100"):
        PartyConfig.load(tmp_path / "absent.toml")


def test_a_party_and_its_peers_must_be_in_the_federation(tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_text(federation_toml([1, 2], ["north", "south"]))
    federation = Federation.load(tmp_path / "federation.toml")
    load(tmp_path, party_toml("north")).check_federation(federation)
    with fails("E100"):
        load(tmp_path, party_toml("west")).check_federation(federation)
    with fails("E100"):
        load(tmp_path, party_toml("north", policy='peers = ["east"]')).check_federation(federation)


@pytest.mark.parametrize("page", ["reference-party-toml.md", "tasks/run-a-party.md", "tasks/write-a-policy.md"])
def test_the_files_in_the_documentation_are_right(tmp_path: Path, page: str) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    samples = re.findall(r"```toml\n(.*?)```", (docs / page).read_text(), re.DOTALL)
    loaded = [load(tmp_path, sample) for sample in samples if sample.startswith("[party]")]
    assert [config.party.name for config in loaded] == ["north"]


def test_fragments_of_policies_in_the_documentation_are_right(tmp_path: Path) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    samples = re.findall(r"```toml\n(.*?)```", (docs / "reference-party-toml.md").read_text(), re.DOTALL)
    fragments = [sample for sample in samples if sample.startswith(("[policy]", "[[dataset]]"))]
    assert len(fragments) == 3
    whole = party_toml("north")
    for fragment in fragments:
        if fragment.startswith("[policy]"):
            load(tmp_path, whole[: whole.index("[policy]")] + fragment)
        else:
            assert load(tmp_path, whole.replace("[policy]", fragment + "[policy]")).dataset[1].policy is not None


def test_the_frequency_service_is_off_unless_there_is_its_table(tmp_path: Path) -> None:
    assert load(tmp_path, party_toml("north")).frequency is None
    table = "[frequency]\nmax_epsilon = 2.5\n"
    section = load(tmp_path, party_toml("north") + table).frequency
    assert section is not None
    assert (section.max_epsilon, section.max_collections, section.max_disk) == (Decimal("2.5"), 100, 10 << 30)
    for wrong in (
        "[frequency]\n",
        table + "max_epsilom = 1\n",
        table + 'mechanisms = ["magic"]\n',
        table + 'min_window = "soon"\n',
        "[frequency]\nmax_epsilon = 0\n",
    ):
        with fails("E100"):
            load(tmp_path, party_toml("north") + wrong)
