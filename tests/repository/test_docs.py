"""The documentation is whole: errors, protocols and tasks have pages, links lead somewhere, examples load."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from comine.command import application
from jobs.documents.hiding import HidingDocument
from jobs.documents.result import ResultDocument
from jobs.loading import job_of, load_job
from jobs.proposed import job_from_canonical
from jobs.schema import NAMES
from link.errors import BY_CODE
from link.version import WINDOW, software_version
from tests.product_texts import gaps, product_texts

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    if "node_modules" not in page.parts
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*#*$", re.MULTILINE)
TOML = re.compile(r"^```toml(?: [^\n]*)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"[|: -]*---[|: -]*")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROTOCOLS = ROOT / "docs" / "protocols"
MANY_LETTERS = 40  # a text with fewer could make nearly any sentence
TASKS = sorted(page.stem for page in (ROOT / "docs" / "tasks").glob("*.md"))
EXPECTED_TASKS = {
    *("itemsets", "rules", "simulate", "three-organisations", "loading-data", "run-a-party", "plan", "run-jobs"),
    *(
        "vertical",
        "hybrid-mining",
        "three-tables",
        "models",
        "across-machines",
        "write-a-policy",
        "certificates",
        "audit",
        "containers",
    ),
}
PROTOCOL_PAGES = {
    "sums.secure_sum": "secure-sum",
    "sums.ring_sum": "ring-sum",
    "sums.masked_maximum": "masked-maximum",
    "union.prefix_union": "prefix-union",
    "union.shared_or": "prefix-union",
    "alignment.alignment": "alignment",
    "alignment.oprf_intersection": "alignment",
    "alignment.long_lists": "alignment",
    "alignment.zero_shares": "alignment",
    "alignment.shown_points": "alignment",
    "alignment.shared_count": "alignment",
    "alignment.functions": "alignment",
    "alignment.matches": "alignment",
    "alignment.choices": "alignment",
    "alignment.listed_positions": "alignment",
    "alignment.shared_positions": "alignment",
    "alignment.bins": "alignment",
    "transfers.base_ot": "base-ot",
    "transfers.oblivious_transfer": "oblivious-transfer",
    "transfers.oprf": "oprf",
    "transfers.oprf_check": "oprf",
    "transfers.programmable_oprf": "oprf",
    "transfers.extension_batches": "ot-extension",
    "transfers.extension_check": "ot-extension",
    "transfers.seed_trees": "ot-extension",
    "transfers.ot_extension": "ot-extension",
    "comparison.comparison": "comparison",
    "comparison.argmin": "argmin",
    "comparison.and_triples": "shares",
    "comparison.shared_bits": "shares",
    "comparison.multiplication": "shares",
    "paillier.dot": "paillier",
    "paillier.kept": "paillier",
    "comparison.conversion": "shares",
    "products.ot_matrix": "ot-matrix",
    "replicated.comparison": "three-party-comparison",
    "replicated.verified_sums": "verified-comparison",
    "replicated.verified_counts": "verified-counts",
    "replicated.count_circuits": "verified-counts",
    "replicated.broadcasts": "verified-counts",
    "replicated.verified_total": "verified-comparison",
    "replicated.verified_or": "verified-union",
    "authenticated.authenticated_sums": "authenticated-comparison",
    "authenticated.and_triples": "authenticated-comparison",
    "authenticated.inputs": "authenticated-comparison",
    "authenticated.bit_proofs": "authenticated-comparison",
    "authenticated.correlation": "authenticated-comparison",
    "authenticated.checks": "authenticated-comparison",
    "union.verified_union": "verified-union",
    "products.replicated": "replicated",
    "products.replicated_counts": "replicated",
    "products.dealer": "dealer",
    "products.dealt_products": "dealer",
    "products.outside_dealer": "dealer",
    "products.outside_products": "dealer",
    "products.shared_products": "shared-products",
    "products.class_counts": "shared-rows",
    "comparison.shared_permutation": "shared-rows",
    "comparison.shared_lookup": "shared-rows",
}
HELPERS = {
    "sums.pairwise",
    "sums.costs",
    "authenticated.costs",
    "authenticated.capped",
    "authenticated.decisions",
    "authenticated.thresholds",
    "union.limits",
    "union.common_length",
    "union.size_classes",
    "union.prefixes",
    "union.prefix_disclosure",
    "union.prefix_costs",
    "alignment.costs",
    "alignment.common_rows",
    "alignment.list_limits",
    "alignment.disclosure",
    "alignment.layers",
    "transfers.extension_seeds",
    "comparison.two_party",
    "comparison.argmin_costs",
    "comparison.costs",
    "replicated.costs",
    "replicated.digits",
    "replicated.circuits",
    "replicated.and_proofs",
    "replicated.crosschecks",
    "replicated.dealing",
    "replicated.evidence",
    "replicated.verified_ands",
    "replicated.zero_checks",
    "replicated.verified_costs",
    "replicated.verified_count_costs",
    "transfers.costs",
    "comparison.carry_chain",
    "comparison.digit_comparison",
    "comparison.digit_tables",
    "transfers.table_transfers",
    "transfers.stages",
    "transfers.extension_streams",
    "transfers.extension_sums",
    "transfers.extension_codes",
    "transfers.vector_transfers",
    "products.chunk_counts",
    "comparison.lifting",
    "products.chains",
    "products.costs",
    "paillier.costs",
    "paillier.arrangement",
    "paillier.rows",
}  # parts of protocols that have pages


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """The names that headings of a page get."""
    made = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(page)))
    return set(made)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_error_has_a_page() -> None:
    pages = {page.stem: page for page in (ROOT / "docs" / "errors").glob("E*.md")}
    assert set(pages) == set(BY_CODE)
    for code, error in BY_CODE.items():
        assert f"Exit code {error.exit_code}" in pages[code].read_text(), code


def is_said(sentence: str) -> bool:
    """Whether the code has a text of that form, or one whose gaps can make it."""
    sentence = sentence.removeprefix("the policy of … ")  # which stands before what a rule says
    longest = max(sentence.split("…"), key=len)
    if any(longest in text and gaps(sentence).search(text) for text in product_texts()):
        return True
    gapped = (text for text in product_texts() if "…" in text and len(text) > MANY_LETTERS)
    return any(max(text.split("…"), key=len) in sentence and gaps(text).search(sentence) for text in gapped)


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_error_pages_quote_what_comine_says(code: str) -> None:
    page = (ROOT / "docs" / "errors" / f"{code}.md").read_text()
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert quoted
    assert [sentence for sentence in quoted if not is_said(sentence)] == []


def test_every_protocol_has_a_page() -> None:
    folder = ROOT / "crypto" / "protocols"
    modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.glob("*/*.py")}
    modules = {module for module in modules if not module.endswith("__init__")}
    assert modules - HELPERS == set(PROTOCOL_PAGES)
    for page in (
        *PROTOCOL_PAGES.values(),
        "joint-models",
        "joint-itemsets",
        "joint-anonymisation",
        "joint-anonymisation-vertical",
        "hybrid",
        "distributed-noise",
        "blended",
    ):
        assert (ROOT / "docs" / "protocols" / f"{page}.md").is_file(), page


def commands() -> dict[str, set[str]]:
    """Every command that is not hidden, with its options."""

    def below(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
        if hasattr(command, "list_commands"):
            for each in command.list_commands(None):
                yield from below(command.get_command(None, each), f"{name} {each}")
        elif not command.hidden:
            yield name, {option for parameter in command.params for option in parameter.opts if "-" in option}

    return dict(below(application(), "comine"))


def test_the_reference_tells_every_command_and_option() -> None:
    reference = (ROOT / "docs" / "reference-cli.md").read_text()
    sections = dict(re.findall(r"^## (comine [^\n]+)\n(.*?)(?=^## |\Z)", reference, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(commands())
    missing = {name: {o for o in options if o not in sections[name]} for name, options in commands().items()}
    assert not {name: options for name, options in missing.items() if options}
    assert not {name for name, section in sections.items() if f"`{name}" not in section}
    silent = {name for name, section in sections.items() if "Exit codes:" not in section and "as [" not in section}
    assert silent == {"comine explain", "comine schema"}


def test_the_reference_tells_every_schema() -> None:
    reference = (ROOT / "docs" / "reference-cli.md").read_text()
    printed = {text for text in product_texts() if re.fullmatch(r"comine\.[a-z-]+/\d+", text)} - {"comine.job-state/1"}
    assert {name for name in printed if f"`{name}`" not in reference} == set()
    assert {name for name in NAMES if f"`{name}`" not in reference} == set()


def test_no_task_is_missing() -> None:
    assert set(TASKS) >= EXPECTED_TASKS


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_page(task: str) -> None:
    page = ROOT / "docs" / "tasks" / f"{task}.md"
    assert page.is_file()
    assert f"tasks/{task}.md" in (ROOT / "docs" / "index.md").read_text()


def test_the_index_links_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = (
        f"{folder}/{page.name}" for folder in ("tasks", "protocols") for page in (ROOT / "docs" / folder).iterdir()
    )
    assert [page for page in pages if f"({page})" not in index] == []


def test_the_glossary_points_to_code_that_is_there() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    places = [place for row in rows for place in re.findall(r"`([\w/]+/[\w/.]*)`", row)]
    assert len(places) > 80
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_architecture_has_all_packages_and_points_to_code_that_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    places = re.findall(r"[ `](\w+/[\w/.]+)", page)
    assert len(places) > 100
    assert [place for place in places if not (ROOT / place).exists()] == []
    layers = re.findall(r"^\| `(\w+)` \|", page.split("## Rooms")[0], re.MULTILINE)
    packages = [path.parent.relative_to(ROOT) for layer in layers for path in (ROOT / layer).glob("*/__init__.py")]
    assert len(packages) > 50
    assert [str(package) for package in packages if f"`{package}`" not in page] == []


def test_links_lead_somewhere() -> None:
    for page, target in [(path, link) for path in PAGES for link in LINK.findall(prose(path))]:
        if target.startswith(("https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        found = page if not file else (page.parent / file).resolve()
        assert found.exists(), (named(page), target)
        assert not anchor or anchor in anchors(found), (named(page), target)


def test_tables_are_whole() -> None:
    for page in PAGES:
        lines = [line.strip() for line in prose(page).split("\n")]
        begun = [n for n, line in enumerate(lines) if line.startswith("|") and not lines[n - 1].startswith("|")]
        assert [lines[n] for n in begun if not RULE.fullmatch(lines[n + 1])] == [], named(page)
        assert [line for line in lines if line.startswith("|") and not line.endswith("|")] == [], named(page)


def test_toml_in_pages_can_be_read_and_whole_jobs_load() -> None:
    for page in PAGES:
        for block in TOML.findall(page.read_text(encoding="utf-8")):
            contents = tomllib.loads(block)
            itemsets = contents.get("itemsets", {})
            if "job" in contents and itemsets.get("universe", "frequent-items") in ("frequent-items", "all-items"):
                job_of(contents, named(page), page.parent)


@pytest.mark.parametrize("job", sorted((ROOT / "examples").rglob("job.toml")), ids=named)
def test_examples_load(job: Path) -> None:
    spec = load_job(job)
    assert job_from_canonical(spec.canonical()) == spec


def test_the_frame_for_protocols_runs_and_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (PROTOCOLS / "try.md").read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "try"}
    exec(compile("\n".join(PYTHON.findall(page)), "try.md", "exec"), space)
    assert capsys.readouterr().out == "".join(re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL))


def test_the_imports_for_protocols_can_be_made_and_the_snippets_need_no_others() -> None:
    page = (PROTOCOLS / "try.md").read_text(encoding="utf-8")
    for line in re.findall(r"`(from [^`]+)`", page):
        space: dict[str, Any] = {}
        exec(line, space)
    told = set(re.findall(r"`(\w+)`", page)) | {
        alias.name for line in re.findall(r"`(from [^`]+)`", page) for alias in importing(line)
    }
    for snippets in PROTOCOLS.glob("*.md"):
        text = snippets.read_text(encoding="utf-8")
        blocks = [block for block in PYTHON.findall(text) if "import " not in block]
        assert not blocks or "(try.md)" in text, snippets.name
        assert set().union(*map(unbound, blocks)) - told <= {"asyncio"}, snippets.name


def importing(line: str) -> list[ast.alias]:
    (node,) = ast.parse(line).body
    assert isinstance(node, ast.ImportFrom)
    return node.names


def unbound(code: str) -> set[str]:
    """The names that a piece of code takes from outside."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} - bound - set(dir(builtins))


def test_the_overview_of_commands_leads_to_each() -> None:
    reference = (ROOT / "docs" / "reference-cli.md").read_text(encoding="utf-8")
    overview = reference.partition("\n## ")[0]
    assert {name for name in commands() if f"(#{name.replace(' ', '-')})" not in overview} == set()


def keys_in(page: str, heading: str) -> set[str]:
    """The keys of the tables of a section, with all their names."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_keys_of_documents_are_told() -> None:
    assert set(ResultDocument.model_json_schema()["properties"]) - {"schema"} <= keys_in(
        "reference-result-folder.md", "`result.json`"
    )
    hiding = HidingDocument.model_json_schema()
    told = keys_in("tasks/rule-hiding.md", "Which method")
    assert set(hiding["properties"]) | set(hiding["$defs"]["EffectsDocument"]["properties"]) <= told


def test_the_versions_that_a_release_speaks_are_those_of_the_code() -> None:
    assert f"| {software_version()} | {WINDOW} |" in (ROOT / "docs" / "upgrading.md").read_text()
