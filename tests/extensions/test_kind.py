"""A kind of job, and a privacy model, that another distribution adds: from its job file to the audit of its result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.audit.checks.results import check_result
from jobs.kinds import packages
from jobs.kinds.conformance import CHECKS, Check, Example
from jobs.kinds.models.tables import ColumnSection
from jobs.kinds.registry import kind_of, kinds, plugin_of
from jobs.loading import job_of, load_job
from jobs.new_job import key_of, render
from jobs.plan.forecast import forecast
from jobs.proposed import job_from_canonical
from jobs.report.job_file import job_file
from jobs.results.folder import write_result_folder
from jobs.schema import generate, published
from jobs.spec.diff import diff
from jobs.spec.job import JobSpec
from jobs.spec.privacy import PrivacySection
from jobs.statement import statement
from link.errors import ConfigurationError
from link.pki.authority import Authority
from link.pki.trust import Trust
from mining.data.transactions import Transactions
from party.policy.policy import decide
from party.policy.policy_input import PolicyInput
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import PolicySection
from party.state.recovery.remembered import remembered
from protos.v1.plan_pb2 import PartyEstimate
from tests.brought import bring
from tests.errors import fails
from tests.extensions.basket_sizes.kind import BasketSizes
from tests.extensions.noisy_basket_sizes.kind import NoisyBasketSizes
from tests.jobs.audit.kinds import agreed
from tests.jobs.plan.answers import SPEED

pytestmark = pytest.mark.turn(5)

PARTIES: Final = ("north", "south", "east")
ADDED: Final = {"sizes": "tests.extensions.basket_sizes", "noisy-sizes": "tests.extensions.noisy_basket_sizes"}
LAPLACE: Final = {"model": "laplace", "epsilon": "1", "delta": "1e-6"}
JOB: Final = """
[job]
name = "sizes"
task = "basket-sizes"
parties = ["north", "south", "east"]
dataset = "baskets"

[basket_sizes]
longest = 4
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    add(tmp_path, monkeypatch, "basket-sizes", ADDED)
    yield
    packages.added.cache_clear()


def add(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, points: Mapping[str, str], **module: str) -> None:
    """Installs a distribution whose entry points name kinds; its own module, where it needs one, by name."""
    name, source = next(iter(module.items()), (f"{package}_empty", ""))
    bring(folder, monkeypatch, name, source, {packages.GROUP: points}, package)
    packages.added.cache_clear()


def job(privacy: Mapping[str, Any] | None = None, **tables: Any) -> JobSpec:
    named = {"name": "sizes", "task": "basket-sizes", "parties": list(PARTIES), "dataset": "baskets"}
    named |= tables.pop("job", {})
    contents = {"job": named, "basket_sizes": {"longest": 4}, **({"privacy": privacy} if privacy else {}), **tables}
    return job_of(contents, "the test", Path())


def baskets() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {p: Transactions.from_rows([list("abcdef")[:n] for n in random.integers(0, 7, 50)]) for p in PARTIES}


def truth() -> tuple[int, ...]:
    lengths = np.concatenate([data.lengths for data in baskets().values()])
    return tuple(np.bincount(np.minimum(lengths, 4), minlength=5).tolist())


@cache
def example(model: str) -> Example:
    return Example(job(None if model == "exact" else LAPLACE), baskets())


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("model", ["exact", "laplace"])
def test_it_is_as_every_kind_must_be(model: str, check: Check) -> None:
    check(example(model))


def case(spec: JobSpec, **more: Any) -> PolicyInput:
    return PolicyInput(spec, "analyst", "north", PARTIES, ["baskets"], 0.0, **more)


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate({"approve": "auto", "tasks": ["basket-sizes"], **rules})


@pytest.mark.parametrize("privacy", [None, LAPLACE])
def test_from_the_job_file_to_the_audit_of_its_result(
    privacy: Mapping[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.toml").write_text(job_file(job(privacy)) if privacy else JOB)
    spec = load_job(tmp_path / "job.toml")
    assert type(kind_of(spec)) is (NoisyBasketSizes if privacy else BasketSizes)
    assert decide(policy(kinds=["sizes", "noisy-sizes"]), case(spec)) == "auto"
    assert "how many rows of all parties have 0, 1, … items" in " ".join(statement(spec).prose())
    plan = forecast(spec, {party: PartyEstimate(speed=SPEED, certificate_bytes=800) for party in PARTIES}, 0.001)
    assert plan.bytes_sent > 0
    authority = Authority.create()
    result = agreed(spec, baskets(), authority, monkeypatch)
    write_result_folder(tmp_path / "result", result)
    assert (tmp_path / "result" / "sizes.csv").exists()
    assert [each.what for each in check_result(tmp_path / "result", Trust(authority.certificate_pem), {})] == []
    assert result.finding is not None
    if privacy is None:
        assert result.finding.value == truth()
    for name, row in (("sizes.csv", b"4,"), ("sizes.parquet", b"PAR1")):
        written = (tmp_path / "result" / name).read_bytes()
        for changed in (written.replace(row, row[:1] + b"0" + row[1:]), b"", None):
            (tmp_path / "result" / name).unlink()
            if changed is not None:
                (tmp_path / "result" / name).write_bytes(changed)
            told = [each.what for each in check_result(tmp_path / "result", Trust(authority.certificate_pem), {})]
            assert any(what.startswith(name) for what in told)
            (tmp_path / "result" / name).write_bytes(written)


def test_noise_is_within_its_law() -> None:
    """Each count is off by at most the shift of each party's noise; none is cut at 0, since all are larger."""
    spec = job({**LAPLACE, "epsilon": "5"})
    finding = asyncio.run(simulate_job(spec, baskets(), seed=1)).finding
    assert finding is not None
    most = kind_of(spec).mean(spec)  # type: ignore[attr-defined]
    off = np.abs(np.array(finding.value) - truth())
    assert (off <= most).all()


def test_its_table_is_part_of_what_parties_agree_on() -> None:
    spec, other = job(), job(basket_sizes={"longest": 5})
    assert b'"basket_sizes":{"longest":4}' in spec.canonical()
    assert spec.digest != other.digest
    assert [change.key for change in diff(spec, other)] == ["basket_sizes.longest"]


def test_comines_own_jobs_are_as_they_were() -> None:
    assert generate("job") == published("job")
    usual = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "d"}
    spec = job_of({"job": usual, "itemsets": {"min_support": "0.1"}}, "the test", Path())
    assert type(spec) is JobSpec
    assert plugin_of(spec) is None
    with fails("E100"):
        job_of({"job": usual, "itemsets": {"min_support": "0.1"}, "basket_sizes": {"longest": 4}}, "the test", Path())


@pytest.mark.parametrize(
    "tables",
    [
        {"basket_sizes": {"longest": 4, "widest": 1}},
        {"basket_sizes": {"longest": 0}},
        {"itemsets": {"min_support": "0.1"}},
        {"basket": {}},
        {"privacy": {"model": "local", "epsilon": "1"}},
        {"job": {"partition": "vertical"}},
        {"privacy": {"model": "laplace", "epsilon": "1"}},
        {"privacy": {**LAPLACE, "colluding": 2}},
        {"privacy": {**LAPLACE, "model": "gauss"}},
    ],
)
def test_what_means_nothing_is_refused(tables: dict[str, Any]) -> None:
    with fails("E100"):
        job(**tables)


def test_the_new_model_is_for_its_own_task_alone() -> None:
    usual = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "d"}
    with fails("E100"):
        job_of({"job": usual, "itemsets": {"min_support": "0.1"}, "privacy": LAPLACE}, "the test", Path())


@pytest.mark.parametrize("privacy", [None, LAPLACE])
def test_without_the_plug_in_the_job_is_refused(
    privacy: Mapping[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(privacy)
    with monkeypatch.context() as before:
        before.setattr("sys.path", [])
        packages.added.cache_clear()
        for read in (job_from_canonical, lambda data: kind_of(spec), lambda data: statement(spec)):
            with pytest.raises(ConfigurationError):
                read(spec.canonical())
        with pytest.raises(ConfigurationError):
            decide(PolicySection.model_validate({"approve": "auto", "tasks": ["itemsets"]}), case(spec))
        with pytest.raises(ValidationError, match="there is no task of that name"):
            policy()
    packages.added.cache_clear()
    assert job_from_canonical(spec.canonical()) == spec


@pytest.mark.parametrize("named", [(), ("noisy-sizes",)])
def test_a_policy_runs_what_it_names_alone(named: tuple[str, ...]) -> None:
    with fails("E300"):
        decide(policy(kinds=list(named)), case(job()))


def test_a_policy_that_names_the_plug_in_still_judges_all_else() -> None:
    rules: dict[str, Any] = {"approve": "auto", "tasks": ["itemsets"], "kinds": ["sizes"]}
    with fails("E300"):
        decide(PolicySection.model_validate(rules), case(job()))
    with fails("E300"):
        decide(policy(kinds=["noisy-sizes"], max_epsilon=0.5), case(job(LAPLACE)))
    with fails("E300"):
        decide(policy(kinds=["noisy-sizes"], models=["exact"]), case(job(LAPLACE)))
    total = DatasetBudget.model_validate({"epsilon": 0.5, "delta": "1e-5"})
    with fails("E300"):
        decide(policy(kinds=["noisy-sizes"]), case(job(LAPLACE), budget=total))


def test_a_policy_names_plug_ins_that_are_there() -> None:
    with pytest.raises(ValidationError, match="there is no plug-in 'size' with a kind of job on this machine"):
        policy(kinds=["size"])


def test_a_kind_of_comines_own_opens_what_policies_have_words_for(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    spec = job_of({"job": usual, "itemsets": {"min_support": "0.1"}}, "the test", Path())
    monkeypatch.setattr(type(kind_of(spec)), "facets", lambda self, spec: frozenset({"itemsets", "other"}))
    with fails("E300"):
        decide(policy(tasks=["itemsets"], kinds=["sizes"]), case(spec))


@pytest.mark.parametrize("facet", ["itemsets", "model", "release"])
def test_a_facet_without_what_its_rules_look_at_is_refused(facet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would find nothing to refuse, or nothing at all."""
    rules = policy(kinds=["sizes"], min_count=1, withhold=["hiv*"])
    for facets in ({facet}, {facet, "other"}, {facet, "rows in common"}):
        monkeypatch.setattr(BasketSizes, "facets", lambda self, spec, facets=frozenset(facets): facets)
        with fails("E300"):
            decide(rules, case(job()))


def test_of_several_facets_the_rules_of_all_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    spec = job_of({"job": usual, "itemsets": {"min_support": 20, "exclude": ["hiv*"]}}, "the test", Path())
    spec = spec.model_copy(update={"columns": {"hiv": ColumnSection(values=("no", "yes"))}})
    for rules in (
        {"min_count": 10},
        {"withhold": ["hiv*"]},
    ):
        assert decide(policy(tasks=["itemsets"], **rules), case(spec)) == "auto"
        with monkeypatch.context() as changed:
            changed.setattr(type(kind_of(spec)), "facets", lambda self, spec: frozenset({"itemsets", "model"}))
            with fails("E300"):
                decide(policy(tasks=["itemsets"], **rules), case(spec))


@pytest.mark.parametrize(
    ("method", "found", "rules"),
    [
        ("engine", "replicated", {"engines": ["ot"]}),
        ("engine", "pooled", {}),
        ("shares", True, {"compute": ["north", "east"]}),
        ("helper", "east", {"helpers": ["south"]}),
    ],
)
def test_whom_a_plug_in_trusts_is_judged_whatever_it_opens(
    method: str, found: object, rules: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BasketSizes, method, lambda self, spec: found)
    with fails("E300"):
        decide(policy(kinds=["sizes"], **rules), case(job()))


def test_what_it_has_cost_counts() -> None:
    kept = remembered(job(LAPLACE).canonical())
    assert (kept.charge.model, kept.charge.epsilon, kept.dataset) == ("laplace", 1, "baskets")


def test_all_kinds_are_listed() -> None:
    assert [type(kind) for kind in kinds()][-2:] == [NoisyBasketSizes, BasketSizes]


KEY: Final = 'from jobs.kinds.key import keys\nKEYS = keys(("{}",), ("horizontal",), ("{}",))\n'


@pytest.mark.parametrize(
    "source",
    [
        "raise RuntimeError('secret')",
        "import sys\nsys.exit(3)",
        "import nothing_of_that_name",
        "def (",
        "",
        "KEYS = ()",
        "KEYS = [1]",
        "KEYS = (('t', 'horizontal', 'exact'),)",
        KEY.format("Task", "exact"),
        KEY.format("a\\nb", "exact"),
        KEY.format("itemsets", "exact"),
        KEY.format("basket-sizes", "exact"),
    ],
)
def test_a_broken_plug_in_is_one_sentence(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, monkeypatch, "broken", {"wrong": "wrong_kind"}, wrong_kind=source)
    with fails("E100") as refused:
        job()
    assert refused.value.__cause__ is None
    assert "secret" not in refused.value.message
    usual = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "d"}
    job_of({"job": usual, "itemsets": {"min_support": "0.1"}}, "the test", Path())  # knows nothing of plug-ins


def test_a_plug_in_whose_kind_is_none_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "kindless"
    package.mkdir()
    (package / "__init__.py").write_text(KEY.format("kindless", "exact"))
    (package / "kind.py").write_text("KIND = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    add(tmp_path, monkeypatch, "no-kind", {"kindless": "kindless"})
    named = {"name": "j", "task": "kindless", "parties": list(PARTIES), "dataset": "d"}
    with fails("E100"):
        job_of({"job": named}, "the test", Path())


def test_two_plug_ins_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy names plug-ins, so a name means one."""
    add(tmp_path, monkeypatch, "twin", {"sizes": "json"})
    with fails("E100"):
        job()


def test_a_model_may_bound_epsilon_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = KEY.format("pure-task", "pure-noise") + 'PURE = ("pure-noise",)\n'
    add(tmp_path, monkeypatch, "pure", {"pure": "pure_kind"}, pure_kind=source)
    assert PrivacySection.model_validate({"model": "pure-noise", "epsilon": "1"}).delta is None
    with pytest.raises(ValidationError, match="needs delta"):
        PrivacySection.model_validate({"model": "laplace", "epsilon": "1"})


def test_a_new_job_of_it_is_written_by_its_template(tmp_path: Path) -> None:
    text, kind = render(key_of("basket-sizes", None, "exact"), PARTIES, "baskets")
    assert isinstance(kind, BasketSizes)
    (tmp_path / "job.toml").write_text(text)
    assert load_job(tmp_path / "job.toml").job.parties == PARTIES


def test_a_kind_without_a_template_says_so() -> None:
    with fails("E100"):
        render(key_of("basket-sizes", None, "laplace"), PARTIES, "baskets")
