"""Commands that pages show are run as they are written, in a folder that has what the page speaks of.

Tutorials lead from nothing to an end, block by block, and are run by `test_tutorials.py`. All other blocks of commands
are run here, page by page: what a line prints must appear where its page compares it, and `EXCEPTIONS` says why a block
is not run. `tests/repository/test_options.py` asks the command line whether it understands every one of them.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow
import pyarrow.parquet
import pytest

from link.pki.authority import Authority, write_identity
from tests.crypto.protocols.replicated.deviating_world import AUTHORITY
from tests.integration.preloaded import forking
from tests.integration.processes import Process, command
from tests.integration.test_tutorials import PRELOADED, TUTORIALS
from tests.jobs.audit.evidence_world import file_of
from tests.party.files import federation_toml, free_ports, party_toml

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
PAGES: Final = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *EXAMPLES.rglob("*.md")))
FENCE: Final = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PROGRAMS: Final = ("comine", "make", "docker", "python", "cd", "id=$(comine", "chown")
SHELL: Final = re.compile(r"[$|;&<>]")
PARTIES: Final = ("north", "south", "east")
TASKS: Final = '["itemsets", "rules", "align", "decision-tree", "anonymize"]'
ROWS: Final = 1000
FORKED: Final = ROOT / "tests/integration/forked_command.py"
VARYING: Final = r"…|(?<=valid until )[0-9-]+|[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?"


class Block(NamedTuple):
    """A block of commands that no tutorial runs."""

    page: str
    text: str

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0].strip()

    @property
    def steps(self) -> Iterator[tuple[str, list[str]]]:
        """Each command with the lines that it prints."""
        lines = self.text.replace("\\\n", "").splitlines()
        console = lines[0].startswith("$ ")
        starts = [n for n, line in enumerate(lines) if not console or line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            if lines[start].strip():
                yield lines[start].removeprefix("$ "), lines[start + 1 : end]


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page that have commands and are not run by a tutorial."""
    page = str(path.relative_to(ROOT))
    for indent, info, text in FENCE.findall(path.read_text(encoding="utf-8")):
        body = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        kind = info.partition(" ")[0]
        run = kind == "sh" and path.parent.name == "tasks" and path.stem in TUTORIALS
        if not run and (kind in ("sh", "console") or (not kind and body.partition(" ")[0] in PROGRAMS)):
            yield Block(page, body)


EXCEPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("README.md", "make demo"): "test_demo.py runs it",
    ("README.md", "comine quickstart"): "the same as in docs/tasks/quickstart.md, which is run",
    ("README.md", "comine federation new"): "a digest of docs/tasks/across-machines.md, which is run",
    ("README.md", "comine anonymize run"): "a digest of docs/tasks/anonymisation.md, which is run",
    ("CONTRIBUTING.md", "make setup"): "checks the repository itself",
    ("docs/anonymize/experiments.md", "python -m examples"): "needs data that are downloaded",
    ("docs/architecture.md", "comine job run"): "a figure",
    ("docs/chaos.md", "python -m tests.chaos"): "takes minutes, from a checkout; tests/chaos runs seeds",
    ("docs/releasing.md", "docker run"): "needs an image",
    ("docs/systemd.md", "# cp"): "for root of a machine with systemd",
    ("docs/systemd.md", "# useradd"): "for root of a machine with systemd",
    ("docs/tasks/across-machines.md", "# python3 -m venv"): "for root of each machine",
    ("docs/tasks/certificates.md", "comine pki install"): "needs a node; tests/party/node/test_reload.py renews",
    ("docs/tasks/console.md", "comine console user add"): "asks for a password, and serves; tests/coordinator/console",
    ("docs/tasks/frequency-clients.md", "pip install"): "needs a registry of packages",
    ("docs/tasks/frequency-service.md", "$ comine frequency estimate"): "the tutorial has the same command before it",
    ("docs/tasks/frequency-service.md", "$ comine shuffle create"): "tests/party/services/shuffler leads reports there",
    ("docs/tasks/quickstart.md", "$ git clone"): "installs comine",
    ("docs/tasks/run-jobs.md", "comine job new"): "an overview: each is of a job in another state",
    ("docs/tasks/run-jobs.md", "comine job resume"): "needs a job that has failed; tests/cli/test_job.py",
    ("docs/tasks/sizing.md", "python -m benchmarks"): "takes minutes",
    ("examples/hybrid/README.md", "python make_data.py"): "the same as in docs/tasks/hybrid-mining.md, which is run",
    ("examples/tumours/README.md", "python make_data.py"): "the same as in docs/tasks/three-tables.md, which is run",
} | dict.fromkeys(
    ((block.page, block.first) for block in blocks(ROOT / "docs/tasks/containers.md")),
    "needs Docker; tests/containers runs the image",
)
"""Blocks that are not run, by how they begin, and why."""

UNLIKE: Final[Mapping[str, str]] = {
    "docs/tasks/frequency.md": "errors are of 100,000 values, and drawn anew",
    "docs/tasks/audit.md": "a smaller job, of a log with more before it",
    "docs/tasks/write-a-policy.md": "a job of hospitals, after others",
    "docs/tasks/privacy-budget.md": "the jobs of some weeks",
    "docs/tasks/private-supports.md": "88,162 baskets, which are not in the repository",
    "docs/tasks/comparing-models.md": "47,000 baskets, which take long",
    "docs/tasks/hybrid-mining.md": "noise is drawn anew",
}
"""Pages whose output is not compared, and why."""


@dataclass
class Office:
    """The folder of somebody who reads a page, and the nodes that run there."""

    page: Path
    folder: Path
    nodes: dict[str, Process] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    """What differs here from what the page has: ids and addresses."""
    awaiting: str = ""
    """How the page calls a job that awaits a decision."""

    def job(self) -> None:
        """Writes the job file of the page, if it has one."""
        text = self.page.read_text(encoding="utf-8")
        jobs = re.findall(r"^```toml\n(\[job\].*?)^```$", text, re.MULTILINE | re.DOTALL)
        if jobs:
            (self.folder / "job.toml").write_text(jobs[0])

    def serve(
        self,
        dataset: str,
        source: str = "{}.dat",
        reading: str = 'kind = "transactions"\nformat = "basket"',
        parties: Sequence[str] = PARTIES,
        policy: str = 'approve = "auto"',
        first: int = 0,
    ) -> None:
        """Starts a node for each party but the `first`, with `party.toml` for the first of all."""
        authority, ports = Authority.create(), free_ports(len(parties))
        authority.write(self.folder / "pki")
        write_identity(authority.issue("analyst", "coordinator"), self.folder / "pki")
        own = '[coordinator]\nca = "pki/ca.crt"\ncertificate = "pki/analyst.crt"\nkey = "pki/analyst.key"\n'
        (self.folder / "federation.toml").write_text(federation_toml(ports, parties) + own)
        for name in parties:
            write_identity(authority.issue(name), self.folder / "pki")
            for end in ("", ".head"):
                (self.folder / f"{name}.log{end}").symlink_to(f"state/{name}/audit.log{end}")
        self.words["7101"] = str(ports[0])
        files = ["party.toml", *(f"{name}.toml" for name in parties[1:])]
        for name, port, file in list(zip(parties, ports, files, strict=True))[first:]:
            node = party_toml(name, port).partition("[[dataset]]")[0]
            data = f'[[dataset]]\nname = "{dataset}"\nsource = "{source.format(name)}"\n{reading}\n'
            (self.folder / file).write_text(f"{node}{data}[policy]\n{policy}\ntasks = {TASKS}\n")
            self.nodes[name] = Process("party", "serve", file, cwd=self.folder)
        for running in self.nodes.values():
            running.until(" is ready at ")
        self.words["north.toml"] = "party.toml"

    def here(self, line: str) -> str:
        """A line of the page with what is called otherwise here."""
        for written, here in self.words.items():
            line = line.replace(written, here)
        return line

    def submit(self) -> str:
        """Proposes the job under another name; the first digits of its id."""
        job = self.folder / "job.toml"
        job.write_text(re.sub(r'(?m)^(name = ".*)"', r'\1."', job.read_text(), count=1))
        return self.run("comine job submit job.toml")[:12]

    def run(self, line: str) -> str:
        """Runs a line of a block, which ends well; what it prints."""
        if self.awaiting in line and re.search(r"comine party (show|approve|deny) ", line):
            self.words[self.awaiting] = self.submit()
        line = self.here(line)
        words = shlex.split(line, comments=True)
        for word in words:
            if word.endswith((".csr", ".crt")) and (self.folder / "pki" / word).exists():  # which somebody brings there
                shutil.copy(self.folder / "pki" / word, self.folder)
        if words[2:3] in (["serve"], ["console"]):
            self.nodes[words[2]] = Process(*words[1:], cwd=self.folder)
            return self.nodes[words[2]].until(" is ready at " if words[2] == "serve" else "the console of ")
        if line.startswith("id=$("):
            line = line.removeprefix("id=$(").removesuffix(")")
            self.words["$id"] = self.run(line)[:12]
            return ""
        if words[0] == "cd":
            self.folder /= words[1]
            return ""
        if words[0] == "comine" and not SHELL.search(line):
            ran = command(*words[1:], cwd=self.folder)
            assert ran.code == 0, (line, ran)
            return ran.out + ran.err
        descriptors = [forking().fileno()] if PRELOADED else []
        named = {"comine": f"-I -S {FORKED} {descriptors[0]}" if PRELOADED else "-m comine", "python": ""}
        shell = "".join(f'{name}() {{ {sys.executable} {more} "$@"; }}; ' for name, more in named.items())
        bash = ["bash", "-c", f"{shell}set -e; {line}"]
        done = subprocess.run(bash, cwd=self.folder, pass_fds=descriptors, capture_output=True, text=True)
        assert done.returncode == 0, (line, done)
        for data in self.folder.glob("*.dat") if words[0] == "python" else ():  # of tens of thousands of rows
            data.write_text("".join(data.read_text().splitlines(keepends=True)[:ROWS]))
        return done.stdout + done.stderr

    def leave(self) -> None:
        """Stops what was started."""
        for node in self.nodes.values():
            node.send(signal.SIGTERM)
        for node in self.nodes.values():
            node.end(60)


def expect(lines: Sequence[str], output: str) -> None:
    """Every line is in the output, in order; what is of a day or a machine differs, and so does what is left out."""
    printed = iter(" ".join(line.split()) for line in output.splitlines())
    for line in filter(str.strip, lines):
        form = re.compile(".*".join(re.escape(part) for part in re.split(VARYING, " ".join(line.split()))))
        assert any(form.fullmatch(found) for found in printed), f"{line}\n--- is not in ---\n{output}"


def example(name: str) -> Callable[[Office], None]:
    """The folder of an example."""

    def prepare(office: Office) -> None:
        shutil.copytree(EXAMPLES / name, office.folder, dirs_exist_ok=True)

    return prepare


def shops(office: Office) -> None:
    """Baskets of three shops in every form that pages name."""
    example("groceries")(office)
    shutil.copytree(EXAMPLES / "groceries", office.folder / "examples/groceries")


def readme(office: Office) -> None:
    inbox("3f2a")(office)
    with (office.folder / "party.toml").open("a") as file:
        file.write(f'[console]\nlisten = "127.0.0.1:{free_ports(1)[0]}"\n')
    for end in ("", ".head"):
        (office.folder / f"other-log.jsonl{end}").symlink_to(f"state/south/audit.log{end}")


def simulated(office: Office) -> None:
    shops(office)
    for name in PARTIES:
        rows = [line.split() for line in (office.folder / f"{name}.dat").read_text().splitlines()]
        there = office.folder / "examples/groceries"
        pyarrow.parquet.write_table(pyarrow.table({"items": rows}), there / f"{name}.parquet")


def jobs(office: Office) -> None:
    """Nodes of three shops that approve at once."""
    shops(office)
    office.serve("baskets")


def audited(office: Office) -> None:
    """The same, where a job was run; and evidence of another federation."""
    jobs(office)
    office.run("comine job run job.toml --out weekly")
    (office.folder / "federation").mkdir()
    (office.folder / "federation" / "ca.crt").write_bytes(AUTHORITY.certificate_pem)
    (office.folder / "evidence.json").write_text(file_of("another key"))


def party(office: Office) -> None:
    """Two nodes of three shops; the page tells how the third is set up."""
    shops(office)
    (office.folder / "north.dat.gz").write_bytes(gzip.compress((office.folder / "north.dat").read_bytes()))
    office.serve("baskets", first=1)
    office.awaiting = "5f0c"
    office.words["/srv/north/state can be made"] = f"{office.folder}/state can be written"


def changed(office: Office) -> None:
    """Nodes where persons decide; the file of one was changed since it was started."""
    inbox("5f0c")(office)
    file = office.folder / "party.toml"
    file.write_text(file.read_text().replace("[policy]", "[dataset.publish]\nrows = 150\n[policy]\nmin_parties = 3"))


def own_job(office: Office) -> None:
    """The same, for the job of the page."""
    jobs(office)
    office.job()


def inbox(awaiting: str) -> Callable[[Office], None]:
    """The same, where persons decide."""

    def prepare(office: Office) -> None:
        shops(office)
        office.serve("baskets", policy='approve = "manual"')
        office.awaiting = awaiting

    return prepare


def tables(office: Office, reading: str, dataset: str, rows: Mapping[str, Sequence[str]]) -> None:
    """Nodes with tables, and the job of the page."""
    for name, lines in rows.items():
        (office.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    office.serve(dataset, "{}.csv", f'kind = "table"\nformat = "csv"\n{reading}', tuple(rows))
    office.job()


def people(office: Office) -> None:
    clinic = ["patient,age,name", *(f"{n},{20 + n % 60},x{n}" for n in range(60))]
    registry = ["patient,income", *(f"{n},{1000 + 37 * n}" for n in range(70))]
    tables(office, 'id = "patient"', "people", {"clinic": clinic, "registry": registry})


def patients(office: Office) -> None:
    shutil.copytree(EXAMPLES, office.folder / "examples")
    rows = [
        "outcome,smoker,age",
        *(f"{'ill' if n % 3 else 'well'},{'yes' if n % 3 else 'no'},{20 + n}" for n in range(60)),
    ]
    tables(office, "id = []", "patients", dict.fromkeys(PARTIES, rows))


def stays(office: Office) -> None:
    (office.folder / "logs").symlink_to(".")
    rows = [f"{'fm'[n % 2]},{40 + n % 4},{('flu', 'cold', 'ulcer')[n % 3]}" for n in range(48)]
    tables(office, "id = []", "stays", {name: ["sex,age,diagnosis", *rows] for name in PARTIES})


def staff(office: Office) -> None:
    rows = [
        "age,city,salary,ill",
        *(f"{20 + n},{('Bern', 'Basel', 'Thun')[n % 3]},{4000 + 10 * n},0" for n in range(40)),
    ]
    queries = re.search(r"(?s)(\[dataset.queries\].*?)coordinators", office.page.read_text(encoding="utf-8"))
    assert queries is not None
    tables(office, f"id = []\n{queries[1]}", "staff", {"north": rows, "south": rows})


def values(office: Office) -> None:
    pages = ["start", "search", "basket", "chess"]
    (office.folder / "all-pages.txt").write_text("".join(f"{page}\n" for page in pages))
    (office.folder / "pages.txt").write_text("".join(f"{pages[n % 7 % 4]}\n" for n in range(2000)))


def compared(office: Office) -> None:
    shops(office)
    shutil.copy(EXAMPLES / "hybrid/items.txt", office.folder)
    office.job()


def perturbed(office: Office) -> None:
    """The folder of the example, beside that from which it takes its items."""
    for name in ("groceries", "hybrid"):
        shutil.copytree(EXAMPLES / name, office.folder / name)
    office.folder /= "hybrid"
    office.run("python make_data.py")
    office.job()
    office.serve("baskets")


def unread(office: Office) -> None:
    office.serve("sales", parties=("north", "south"), first=2)
    (office.folder / "sales.csv").write_text("id,item\n" + "".join(f"{n // 2},item{n % 7}\n" for n in range(60)))
    (office.folder / "people.csv").write_text("patient,age\n" + "".join(f"{n},{n + 20}\n" for n in range(30)))


def hidden(office: Office) -> None:
    rows = ["bread milk beer", "bread milk", "tea", "nappies beer", "bread milk beer"] * 20
    (office.folder / "baskets.dat").write_text("\n".join(rows) + "\n")
    rules = re.search(r"```\n(# what we do not.*?)```", office.page.read_text(encoding="utf-8"), re.DOTALL)
    assert rules is not None
    (office.folder / "rules.txt").write_text(rules[1])


def relayed(office: Office) -> None:
    authority = Authority.create()
    authority.write(office.folder / "hospitals")
    write_identity(authority.issue("relay", hosts=["relay.example"]), office.folder)
    relay = re.search(r"```toml\n(\[relay\]\nlisten.*?)```", office.page.read_text(encoding="utf-8"), re.DOTALL)
    assert relay is not None
    (office.folder / "relay.toml").write_text(relay[1].replace(":443", f":{free_ports(1)[0]}"))


def nothing(office: Office) -> None:
    """A page that needs no files."""


WORLDS: Final[Mapping[str, Callable[[Office], None]]] = {
    "README.md": readme,
    "docs/tasks/simulate.md": simulated,
    "docs/tasks/itemsets.md": own_job,
    "docs/tasks/plan.md": own_job,
    "docs/tasks/run-jobs.md": jobs,
    "docs/tasks/run-a-party.md": party,
    "docs/tasks/write-a-policy.md": inbox("777e"),
    "docs/tasks/life-with-a-node.md": changed,
    "docs/tasks/blended.md": own_job,
    "docs/tasks/private-supports.md": own_job,
    "docs/tasks/vertical.md": people,
    "docs/tasks/models.md": patients,
    "docs/tasks/joint-anonymisation.md": stays,
    "docs/tasks/certificates.md": nothing,
    "docs/tasks/monitoring.md": jobs,
    "docs/tasks/audit.md": audited,
    "docs/tasks/privacy-budget.md": jobs,
    "docs/tasks/audited-queries.md": staff,
    "docs/tasks/frequency.md": values,
    "docs/tasks/comparing-models.md": compared,
    "docs/tasks/hybrid-mining.md": perturbed,
    "docs/tasks/loading-data.md": unread,
    "docs/tasks/rule-hiding.md": hidden,
    "docs/tasks/relay.md": relayed,
    "examples/cards/README.md": example("cards"),
    "examples/groceries/README.md": example("groceries"),
}
"""What each page speaks of."""


@pytest.mark.slow
@pytest.mark.turn(2)
@pytest.mark.parametrize("page", WORLDS)
def test_commands_of_a_page_do_what_it_says(tmp_path: Path, page: str) -> None:
    office = Office(ROOT / page, tmp_path)
    try:
        WORLDS[page](office)
        for block in blocks(ROOT / page):
            for line, printed in () if exceptions(block) else block.steps:
                output = office.run(line)
                if page not in UNLIKE:
                    expect([office.here(each) for each in printed], output)
        office.leave()
    finally:
        for node in office.nodes.values():
            node.kill()
        end_drivers(tmp_path)


def end_drivers(folder: Path) -> None:
    """Ends the drivers of jobs that a page leaves undecided: they would try for days."""
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            parts = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdecimal() else []
            if b"drive" in parts and any(part.startswith(f"{folder}/".encode()) for part in parts):
                os.kill(int(process.name), signal.SIGKILL)


def exceptions(block: Block) -> list[tuple[str, str]]:
    return [key for key in EXCEPTIONS if block.page == key[0] and block.first.startswith(key[1])]


def test_every_block_is_run_or_has_a_reason() -> None:
    found = [block for path in PAGES for block in blocks(path)]
    assert {key for key in EXCEPTIONS if not any(key in exceptions(block) for block in found)} == set()
    run = [block for block in found if not exceptions(block)]
    assert {block.page for block in run} == set(WORLDS)
    assert set(WORLDS) >= set(UNLIKE)
