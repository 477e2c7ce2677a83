"""What a node's support bundle and monitoring files hold."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from jobs.support import size
from link.pki.authority import Authority
from party.cli import app
from party.services.metrics.metrics import Metrics
from party.support import support_bundle
from relay.metrics import RelayMetrics
from tests.integration.processes import Organisations, command
from tests.party.files import write_federation
from tests.party.nodes import running, weekly
from tests.relay.relays import relay_toml

SHIPPED = files("party.services.metrics") / "monitoring"
METRIC = re.compile(r"\b(?:comine|rpc|process)_\w+")
PRIVATE = """
[[dataset]]
name = "patients"
kind = "table"
source = "postgresql://secret-host/clinic"
format = "sql"
query = "SELECT secret_column FROM secret_table"
publish = { rows = 12300 }
password_env = "SECRET_VARIABLE"

[dataset.policy]
withhold = ["hiv*"]
columns = { blood_group = ["sensitive"] }

[dataset.privacy]
epsilon = 4
delta = 1e-6
"""


def shown(registry: CollectorRegistry) -> set[str]:
    """Names of all samples that a node or a relay can show."""
    found = set()
    for family in registry.collect():
        ends = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",)}.get(family.type, ("",))
        found |= {family.name + end for end in ends}
    return found


@pytest.mark.parametrize("name", ["comine-alerts.yml", "comine-dashboard.json"])
def test_monitoring_asks_for_metrics_that_nodes_and_relays_have(name: str) -> None:
    text = (SHIPPED / name).read_text(encoding="utf-8")
    gauges = {
        "comine_jobs_running", "comine_jobs_waiting", "comine_jobs_undecided", "comine_budget_used_ratio",
        "comine_certificate_expiry_timestamp_seconds", "comine_state_free_bytes",
    }  # fmt: skip
    asked = set(METRIC.findall(text))
    assert asked
    assert asked <= shown(Metrics().registry) | shown(RelayMetrics().registry) | gauges
    if name.endswith(".json"):
        json.loads(text)


def test_alert_rules_are_as_prometheus_wants_them(tmp_path: Path) -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    done = CliRunner().invoke(app, ["monitoring", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"comine-alerts.yml", "comine-dashboard.json"}
    checked = subprocess.run([promtool, "check", "rules", tmp_path / "comine-alerts.yml"], check=False)
    assert checked.returncode == 0


def test_a_bundle_says_how_a_node_fares_and_names_nothing(tmp_path: Path) -> None:
    async def test() -> dict[str, Any]:
        async with running(tmp_path, policy="max_jobs = 4\n") as nodes:
            await nodes.run(weekly())
            return await asyncio.to_thread(support_bundle, tmp_path / "north.toml")

    bundle = asyncio.run(test())
    assert bundle["ready"]
    assert bundle["jobs"] == [{"task": "itemsets", "state": "succeeded", "code": "", "number": 1}]
    assert bundle["audit_events"]["opened"] >= 1
    assert bundle["settings"]["policy"]["max_jobs"] == 4
    assert bundle["software"]["packages"]["grpcio"]
    text = json.dumps(bundle)
    assert not any(word in text for word in ("north", "south", "analyst", "weekly", "baskets", "item0", str(tmp_path)))


def test_a_bundle_has_no_text_of_the_settings(tmp_path: Path) -> None:
    write_federation(tmp_path, {"north": [["bread"]]})
    file = tmp_path / "north.toml"
    file.write_text(file.read_text() + PRIVATE)
    text = json.dumps(support_bundle(file))
    assert not any(word in text for word in ("secret", "SECRET", "hiv", "patients", "clinic", "123", "bread", "blood"))
    settings = json.loads(text)["settings"]["dataset"][-1]
    assert (settings["kind"], settings["query"], settings["publish"]) == ("table", "set", "set")
    assert settings["policy"]["withhold"] == "1 set"


def test_files_that_go_meanwhile_count_nothing(tmp_path: Path) -> None:
    """As a node that runs removes them: they are listed, and not there."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results/kept").write_bytes(bytes(7))
    (tmp_path / "results/gone").symlink_to(tmp_path / "gone")
    assert size(tmp_path / "results") == size(tmp_path / "results/kept") == 7
    assert size(tmp_path / "gone") is None


def printed(file: Path) -> dict[str, Any]:
    """What the command prints."""
    ran = command("support-bundle", file, cwd=file.parent)
    assert ran.code == 0, ran.err
    return dict(json.loads(ran.out))


def test_the_bundle_of_a_relay_names_nobody(tmp_path: Path) -> None:
    authority = Authority.create()
    authority.write(tmp_path / "pki")
    file = tmp_path / "relay.toml"
    pins = f'pins = {{ "party/secret-party" = "{"ab" * 32}" }}\n'
    file.write_text(relay_toml(4431, "streams = 77\n").replace('"retail"', '"secret-federation"') + pins)
    bundle = printed(file)
    assert (bundle["program"], bundle["settings"]["limits"], bundle["metrics"]) == ("relay", {"streams": 77}, None)
    assert bundle["settings"]["federation"][0]["pins"] == "set"
    text = json.dumps(bundle)
    assert not any(word in text for word in ("secret", "127.0.0.1", "4431", "relay.crt", "abab", str(tmp_path)))


def test_the_bundle_of_a_coordinator_counts_its_jobs_and_names_nobody(tmp_path: Path) -> None:
    world = Organisations.create(tmp_path, {"secret-north": [["bread"]], "secret-south": [["bread"]]})
    job = world.job("job.toml")
    job.write_text(job.read_text().replace("weekly", "secret-job"))
    assert world.run_here().code == 20  # no node runs
    bundle = printed(tmp_path / "federation.toml")
    assert bundle["program"] == "coordinator"
    assert bundle["jobs"] == [{"task": "itemsets", "state": "failed", "code": "E200", "number": 1}]
    assert bundle["state_bytes"]["jobs"] > 0
    text = json.dumps(bundle)
    assert not any(word in text for word in ("secret", "bread", "hub", "127.0.0.1", "retail", str(tmp_path)))
