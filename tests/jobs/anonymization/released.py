"""A folder of `comine anonymize run`, with all the files that one can hold."""

from __future__ import annotations

from pathlib import Path

from jobs.anonymization.api import anonymize

JOBS = ("baker", "cook", "clerk", "nurse", "smith", "tailor")
CONFIG = """
[anonymize]
source = "people.csv"
algorithm = "optimal"
identifiers = ["id"]
quasi_identifiers = ["job"]
sensitive = ["disease"]
[anonymize.model]
k = 15
[anonymize.hierarchies]
job = "job.csv"
"""


def release_here(out: Path, source: Path) -> Path:
    """Makes such a folder of data and a configuration in another one."""
    rows = [f"{i},{JOBS[i % 6]},{'flu' if i % 5 else 'none'}" for i in range(60)]
    (source / "people.csv").write_text("\n".join(["id,job,disease", *rows]) + "\n")
    kinds = [f"{job},{'crafts' if i < 3 else 'others'},*" for i, job in enumerate(JOBS)]
    (source / "job.csv").write_text("\n".join(kinds) + "\n")
    (source / "anonymize.toml").write_text(CONFIG)
    anonymize(source / "anonymize.toml").save(out)
    return out
