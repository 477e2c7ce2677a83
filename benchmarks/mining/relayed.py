"""A complete private job whose nodes only dial out, to a relay on this machine, beside the same job without it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.datasets import JOB_CASES, QUICK, available, folder
from benchmarks.federation import Bench, federation
from benchmarks.settings import Settings
from benchmarks.table import Table
from coordinator.demo.loopback import LoopbackFederation, free_addresses
from link.pki.authority import Authority, write_identity

TIMES, MORE_S = 1.5, 0.3


def run(settings: Settings) -> list[Table]:
    """Wall time of `comine job run` with warm nodes, called directly and through a relay."""
    table = Table(
        "Joint job of three parties through a relay: seconds of the whole process `comine job run`, nodes running",
        ("data", "direct", "relayed", "times", "above"),
        notes=[f"through a relay it should take at most {TIMES} times as long and {MORE_S} s more"],
    )
    cases = available(QUICK if settings.quick else JOB_CASES)
    if not cases:
        table.notes.append(f"skipped: no data in {folder()}; set COMINE_REFERENCE_DATA")
    for case in cases:
        settings.tell(f"job through a relay on {case.name}")
        with federation(case) as bench:
            direct = _quickest(bench, settings)
        with federation(case, around=relayed) as bench:
            through = _quickest(bench, settings)
        table.add(case.name, direct, through, through / direct, through - direct)
    return [table]


def _quickest(bench: Bench, settings: Settings) -> float:
    bench.run()  # warm: data loaded, connections open
    return min(bench.run().seconds for _ in range(settings.repeats))


@contextlib.contextmanager
def relayed(made: LoopbackFederation) -> Iterator[None]:
    """Takes the parties' addresses away, and runs a relay that connects them."""
    (address,) = free_addresses(1)
    host = address.rpartition(":")[0]
    home, authority = made.folder / "relay", Authority.read(made.folder / "authority")
    write_identity(authority.issue("relay", hosts=[host]), home)
    (home / "relay.toml").write_text(
        f'[relay]\nlisten = "{address}"\nname = "{host}"\ncertificate = "relay.crt"\nkey = "relay.key"\n'
        '[[federation]]\nname = "loopback"\nca = "../authority/ca.crt"\n'
    )
    for file in made.folder.glob("*/federation.toml"):
        members = re.sub(r"(?m)^address = .*\n", "", file.read_text())
        file.write_text(f'{members}\n[relay]\naddress = "{address}"\n')
    for file in made.folder.glob("*/party.toml"):
        file.write_text(re.sub(r"(?m)^listen = .*\n", "", file.read_text()))
    command = [sys.executable, "-P", "-m", "comine", "relay", "serve", str(home / "relay.toml")]
    with (home / "relay.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as relay:
        try:
            yield
        finally:
            relay.terminate()
