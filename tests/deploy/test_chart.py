"""The chart: rendered by Helm, looked over with Kubernetes' own schemas, and its files read by comine itself."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.federation import Federation
from jobs.loading import load_job
from party.config import PartyConfig
from relay.config import RelayConfig
from tests.deploy.tools import ROOT, helm, run, tool
from tests.examples import crossed

CHART = ROOT / "deploy" / "helm" / "comine"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
VERSIONS = ("1.29", "1.37")  # of Kubernetes: the oldest that the chart takes, and the newest with schemas here
MORE = {  # of each part, what no example sets
    "node": (
        *("serviceAccount.annotations.example\\.org/role=reader", "user=1000650000", "image.pullSecrets[0]=registry"),
        *(
            "node.env.https_proxy=http://proxy.example:3128",
            "node.nodeSelector.disk=fast",
            "node.state.storageClass=fast",
        ),
        *("node.tolerations[0].operator=Exists", "node.resources.limits.cpu=4", "node.service.type=NodePort"),
    ),
    "relay": ("serviceAccount.name=mine", "relay.networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24"),
    "coordinator": (
        *("coordinator.schedule=", "coordinator.env.no_proxy=example", "coordinator.secretEnv[0].env=https_proxy"),
        *("coordinator.secretEnv[0].secret=proxy", "coordinator.secretEnv[0].key=address"),
        *("coordinator.networkPolicy.egress[0].ports[0].port=7101", "coordinator.podAnnotations.team=data"),
    ),
}
SECRETS = {"shop-store", "north-tls", "relay-tls", "analyst-tls"}

pytestmark = [pytest.mark.slow, pytest.mark.turn(2)]

Manifest = dict[str, Any]


@functools.cache
def render(*arguments: object) -> str:
    ran = run(helm(), "template", "north", CHART, *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def refusal(*arguments: object) -> str:
    ran = run(helm(), "template", "north", CHART, *arguments)
    assert ran.returncode != 0
    return ran.stderr


def manifests(*arguments: object) -> list[Manifest]:
    return [each for each in yaml.safe_load_all(render(*arguments)) if each is not None]


def one(found: list[Manifest], *kinds: str) -> Manifest:
    (only,) = (each for each in found if each["kind"] in kinds)
    return only


def pod(found: list[Manifest]) -> Manifest:
    workload = one(found, "StatefulSet", "Deployment", "Job", "CronJob")
    spec = workload["spec"]["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else workload["spec"]
    return spec["template"]["spec"]


def annotations_of(found: list[Manifest]) -> dict[str, str]:
    return dict(one(found, "StatefulSet", "Deployment")["spec"]["template"]["metadata"]["annotations"])


def at(name: str) -> Path:
    return CHART / "examples" / f"{name}.yaml"


def part_of(values: Path) -> str:
    (part,) = {"node", "relay", "coordinator"} & {*yaml.safe_load(values.read_text())}
    return part


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == chart["version"] == project["version"]


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda file: file.stem)
def test_helm_has_nothing_to_complain_of(values: Path) -> None:
    ran = run(helm(), "lint", "--strict", CHART, "--values", values)
    assert ran.returncode == 0, ran.stdout
    assert "[WARNING]" not in ran.stdout


@pytest.mark.parametrize(
    ("values", "version"), crossed(EXAMPLES, VERSIONS), ids=lambda value: getattr(value, "stem", value)
)
def test_kubernetes_takes_what_comes_of_it(values: Path, version: str, tmp_path: Path) -> None:
    more = [part for change in MORE[part_of(values)] for part in ("--set", change)]
    made = tmp_path / "made.yaml"
    made.write_text(render("--values", values) + render("--values", values, *more))
    ran = run(tool("kubernetes-validate"), "--strict", "--kubernetes-version", version, made)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    number = len(manifests("--values", values)) + len(manifests("--values", values, *more))
    assert len(re.findall(" passed for resource ", ran.stdout + ran.stderr)) == number


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda file: file.stem)
def test_pods_may_do_nothing_but_what_they_are_for(values: Path) -> None:
    """What Kubernetes calls the restricted pod security standard, and more."""
    found = manifests("--values", values)
    spec = pod(found)
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & {*spec}
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == 10001
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["image"] == "images.example/comine:0.1.0"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {*container["resources"]} == {"requests", "limits"}
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable <= {"/tmp", "/var/lib/comine", "/run/secrets/comine"}
    for volume in spec["volumes"]:
        assert {*volume} - {"name"} <= {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}
        if "persistentVolumeClaim" not in volume and "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]
    kinds = {each["kind"] for each in found}
    assert "Secret" not in kinds
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda file: file.stem)
def test_secrets_are_only_named(values: Path) -> None:
    spec = pod(manifests("--values", values))
    named = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    for variable in spec["containers"][0].get("env", []):
        assert "value" not in variable
        if "secretKeyRef" in variable["valueFrom"]:
            named.add(variable["valueFrom"]["secretKeyRef"]["name"])
    assert named
    assert named <= SECRETS


def test_a_node_has_one_owner_of_its_state_and_time_to_end() -> None:
    found = manifests("--values", at("node"))
    workload = one(found, "StatefulSet")
    assert workload["spec"]["replicas"] == 1
    assert workload["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    spec = pod(found)
    assert spec["terminationGracePeriodSeconds"] >= 15  # a node ends within 10 s
    (container,) = spec["containers"]
    health = ["comine", "party", "health", "/etc/comine/party.toml"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["exec"]["command"] == health
    assert "livenessProbe" not in container
    assert one(found, "PodDisruptionBudget")["spec"]["minAvailable"] == 1
    selector = workload["spec"]["selector"]["matchLabels"]
    assert selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()
    assert one(found, "Service")["spec"]["selector"] == selector
    for kind in ("NetworkPolicy", "PodDisruptionBudget"):
        policy = one(found, kind)["spec"]
        assert (policy.get("podSelector") or policy["selector"])["matchLabels"] == selector


def test_a_node_is_called_at_its_port_alone_and_one_that_dials_out_at_none() -> None:
    ingress = one(manifests("--values", at("node")), "NetworkPolicy")["spec"]["ingress"]
    assert [[port["port"] for port in rule["ports"]] for rule in ingress] == [[7101], [9464]]
    assert all(rule["from"] for rule in ingress)
    found = manifests("--values", at("outbound-node"))
    policy = one(found, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == []
    assert "ports" not in one(found, "Service")["spec"]
    assert "ports" not in pod(found)["containers"][0]


@pytest.mark.parametrize("part", ["node", "relay"])
def test_callers_from_outside_keep_their_addresses(part: str) -> None:
    """The policy of the network and the relay's limits go by them."""
    service = one(manifests("--values", at(part)), "Service")["spec"]
    assert (service["type"], service["externalTrafficPolicy"]) == ("LoadBalancer", "Local")
    inside = manifests("--values", at(part), "--set", f"{part}.service.type=ClusterIP")
    assert "externalTrafficPolicy" not in one(inside, "Service")["spec"]


@pytest.mark.parametrize(("values", "part"), [("outbound-node", "node"), ("coordinator", "coordinator")])
def test_who_dials_out_may_be_told_of_a_proxy(values: str, part: str) -> None:
    address = "http://proxy.example:3128"
    before, found = (
        pod(manifests("--values", at(values), *more))["containers"][0].get("env", [])
        for more in ((), ("--set", f"{part}.env.https_proxy={address}"))
    )
    assert [each for each in found if each not in before] == [{"name": "https_proxy", "value": address}]


def test_an_account_of_ones_own_is_not_made_again() -> None:
    found = manifests("--values", at("node"), "--set", "serviceAccount.name=mine")
    assert "ServiceAccount" not in {each["kind"] for each in found}
    assert pod(found)["serviceAccountName"] == "mine"
    made = manifests("--values", at("node"), "--set", "serviceAccount.annotations.role=reader")
    account = one(made, "ServiceAccount")
    assert account["metadata"]["annotations"] == {"role": "reader"}
    assert pod(made)["serviceAccountName"] == account["metadata"]["name"]


def test_a_relay_calls_nobody_and_outlives_its_connections() -> None:
    found = manifests("--values", at("relay"), "--set", "relay.drain=60")
    assert one(found, "NetworkPolicy")["spec"]["egress"] == []
    assert one(found, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert pod(found)["terminationGracePeriodSeconds"] == 70


@pytest.mark.parametrize("part", ["node", "relay"])
def test_metrics_are_read_by_whom_they_are_opened_to_and_found_by_annotations(part: str) -> None:
    found = manifests("--values", at(part), "--set", f"{part}.podAnnotations.team=data")
    annotations = annotations_of(found)
    assert annotations.items() >= {"prometheus.io/scrape": "true", "prometheus.io/port": "9464", "team": "data"}.items()
    *_, rule = one(found, "NetworkPolicy")["spec"]["ingress"]
    assert rule["ports"] == [{"port": 9464, "protocol": "TCP"}]
    assert rule["from"]
    closed = manifests("--values", at(part), "--set-json", f"{part}.networkPolicy.metricsFrom=[]")
    assert len(one(closed, "NetworkPolicy")["spec"]["ingress"]) == 1
    mine = manifests("--values", at(part), "--set-string", f"{part}.podAnnotations.prometheus\\.io/port=1")
    assert annotations_of(mine)["prometheus.io/port"] == "1"
    none = manifests("--values", at(part), "--set", f"{part}.metricsPort=0")
    assert {*annotations_of(none)} == {"checksum/files"}


@pytest.mark.parametrize("part", ["node", "relay"])
def test_an_operator_of_prometheus_is_told_where_it_is_wanted(part: str) -> None:
    assert "PodMonitor" not in render("--values", at(part))
    asked = ("--set", f"{part}.podMonitor.enabled=true", "--set", f"{part}.podMonitor.labels.release=prometheus")
    found = manifests("--values", at(part), *asked)
    monitor = one(found, "PodMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    labels = one(found, "StatefulSet", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (container,) = pod(found)["containers"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}
    assert "PodMonitor" not in render("--values", at(part), *asked, "--set", f"{part}.metricsPort=0")


def test_a_job_begins_once_or_by_the_clock() -> None:
    found = manifests("--values", at("coordinator"))
    assert one(found, "CronJob")["spec"]["concurrencyPolicy"] == "Forbid"
    once = manifests("--values", at("coordinator"), "--set", "coordinator.schedule=")
    job = one(once, "Job")
    assert job["metadata"]["name"] == "north-coordinator-1"
    assert job["spec"]["backoffLimit"] == 0
    for each in (found, once):
        assert pod(each)["restartPolicy"] == "Never"
        assert one(each, "NetworkPolicy")["spec"]["ingress"] == []


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda file: file.stem)
def test_comine_reads_the_files_of_the_examples(values: Path, tmp_path: Path) -> None:
    found = manifests("--values", values)
    for name, text in one(found, "ConfigMap")["data"].items():
        (tmp_path / name).write_text(text)
    files = {path.name for path in tmp_path.iterdir()}
    spec = pod(found)
    held = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    if "party.toml" in files:
        config = PartyConfig.load(tmp_path / "party.toml")
        config.check_federation(Federation.load(tmp_path / "federation.toml"))
        assert any(config.party.state_dir.is_relative_to(place) for place in held - {"/tmp"})
        assert os.fspath(config.tls.key) == "/run/secrets/comine/tls.key"
        ports = {port["containerPort"] for port in spec["containers"][0].get("ports", [])}
        listens = {config.party.listen, config.metrics and config.metrics.listen} - {None}
        assert {int(each.rpartition(":")[2]) for each in listens} == ports
    if "relay.toml" in files:
        relay = RelayConfig.load(tmp_path / "relay.toml")
        assert relay.metrics is not None
        named = {port["name"]: f"0.0.0.0:{port['containerPort']}" for port in spec["containers"][0]["ports"]}
        assert named == {"relay": relay.relay.listen, "metrics": relay.metrics.listen}
    if "job.toml" in files:
        assert load_job(tmp_path / "job.toml").job.parties == ("north", "south", "east")
        Federation.load(tmp_path / "federation.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("node.enabled=false", "set one of node.enabled, relay.enabled and coordinator.enabled"),
        ("relay.enabled=true", "set one of node.enabled, relay.enabled and coordinator.enabled"),
        ("node.tlsSecret=", "node.tlsSecret is needed"),
        ("node.replicas=2", "additional properties 'replicas' not allowed"),
        ("user=0", "minimum"),
        ("node.port=443", "/node/port"),
        ("image.digest=latest", "/image/digest"),
        ("node.files.north\\.key=secret", "invalid propertyName 'north.key'"),
        ("node.files.party\\.toml=-----BEGIN PRIVATE KEY-----", "/node/files/party.toml"),
        ("node.secretEnv[0].value=secret", "/node/secretEnv/0"),
        ("node.env.https_proxy=http://north:secret@proxy.example:3128", "/node/env/https_proxy"),
    ],
)
def test_values_that_mean_no_good_are_refused(change: str, said: str) -> None:
    assert said in refusal("--values", at("node"), "--set", change)


@pytest.mark.parametrize(
    ("part", "first"), [("node", "party.toml"), ("relay", "relay.toml"), ("coordinator", "job.toml")]
)
def test_a_part_without_its_files_is_refused(part: str, first: str) -> None:
    said = refusal("--set", f"{part}.enabled=true", "--set", f"{part}.tlsSecret={part}-tls")
    assert f"{part}.configMap is needed, or {first} in {part}.files" in said


def test_files_of_ones_own_are_not_made_again() -> None:
    found = manifests(
        "--values", at("node"), "--set", "node.configMap=north-files", "--set", "image.digest=sha256:" + 64 * "a"
    )
    assert "ConfigMap" not in {each["kind"] for each in found}
    (etc,) = (volume for volume in pod(found)["volumes"] if volume["name"] == "etc")
    assert etc["configMap"] == {"name": "north-files"}
    assert pod(found)["containers"][0]["image"] == f"images.example/comine@sha256:{64 * 'a'}"
