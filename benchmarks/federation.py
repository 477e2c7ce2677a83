"""A running federation for one case: data dealt to three parties, nodes up, job file written."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import Case, deal, lines
from benchmarks.measure import Finished, run_process
from benchmarks.settings import PARTIES
from coordinator.demo.loopback import LoopbackFederation
from jobs.loading import load_job
from jobs.spec.job import JobSpec
from mining.data.loading import load_transactions
from mining.joint.parameters import Disclose
from mining.public_sizes import measured


@dataclass(frozen=True)
class Bench:
    """A federation whose nodes run.

    Attributes:
        case: The data and the threshold.
        federation: Its folders and processes.
        spec: The job.
        files: Each party's basket file.
        pooled: The file with all rows.
    """

    case: Case
    federation: LoopbackFederation
    spec: JobSpec
    files: Mapping[str, Path]
    pooled: Path

    def run(self, disclose: Disclose = "supports", itemsets: str = "", trust: str = "") -> Finished:
        """`comine job run` as a process, result folder included; with more lines of two tables of the job."""
        folder = self.federation.folder
        (folder / "job.toml").write_text(job_file(self.case, disclose, itemsets, trust), encoding="utf-8")
        return run_process(
            [
                *(sys.executable, "-P", "-m", "comine", "job", "run", folder / "job.toml"),
                *("--federation", self.federation.file, "--out", folder / "result"),
            ]
        )


@contextlib.contextmanager
def federation(
    case: Case,
    around: Callable[[LoopbackFederation], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[Bench]:
    """Deals the case's rows to three parties and starts their nodes; stops them and removes all files at the end.

    Args:
        case: The data and the threshold.
        around: What is prepared before the nodes start, and goes on while they run.
    """
    with tempfile.TemporaryDirectory(prefix="comine-bench-") as name:
        folder = Path(name)
        rows = lines(case)
        (folder / "pooled.dat").write_text("".join(rows), encoding="utf-8")
        files = deal(rows, PARTIES, folder)
        public = {party: measured(load_transactions(file, "basket")) for party, file in files.items()}
        made = LoopbackFederation.prepare(folder, "baskets", files, public=public)
        (folder / "job.toml").write_text(job_file(case), encoding="utf-8")
        with around(made), made.running():
            asyncio.run(made.ready())
            yield Bench(case, made, load_job(folder / "job.toml"), files, folder / "pooled.dat")


def job_file(case: Case, disclose: Disclose = "supports", itemsets: str = "", trust: str = "") -> str:
    """The job of a case; `disclose` says whose sums are opened, the rest is more lines of two tables."""
    names = ", ".join(f'"{name}"' for name in PARTIES)
    return (
        f'[job]\nname = "benchmark"\ntask = "itemsets"\nparties = [{names}]\ndataset = "baskets"\n'
        f'[itemsets]\nmin_support = {case.support}\ndisclose = "{disclose}"\n'
        f"{itemsets}[trust]\n{trust}"
    )
