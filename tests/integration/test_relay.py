"""Nodes that only dial out, as processes: through a relay, and a proxy for web traffic."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path

import pytest

from mining.reference.pooled import brute_force
from tests.integration.processes import Organisations, Process
from tests.party.files import free_ports
from tests.party.nodes import DATA
from tests.relay.relays import by_relay
from tests.web_proxy import web_proxy

pytestmark = pytest.mark.slow

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, and the same in IPv6
LISTENS = "0A"  # the state of a socket in /proc/net/tcp


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens, as the kernel writes them."""
    own = {os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in own:
                found.add(fields[1].partition(":")[0])
    return found


@pytest.mark.usefixtures("real_groups")  # the node with other variables has them
def test_nodes_that_nobody_can_call_mine_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    organisations = Organisations.create(tmp_path, DATA)
    by_relay(tmp_path, port)(organisations.authority)
    relay = Process("relay", "serve", "relay.toml", cwd=tmp_path)
    relay.until(" is ready at ")
    try:
        organisations.start("south", "east")
        with web_proxy() as (url, asked), monkeypatch.context() as patch:
            patch.setenv("https_proxy", url)
            patch.setenv("no_proxy", "")
            organisations.start("north")
            for node in organisations.nodes.values():
                node.until('"relay connected"')
                assert listening(node.popen.pid) <= LOOPBACK
            ran = organisations.run_here(organisations.job())
            assert ran.code == 0, ran.err
            assert {*asked} == {f"CONNECT 127.0.0.1:{port}"}
            organisations.stop()
        relay.send(signal.SIGTERM)
        assert relay.end().code == 0
        with (tmp_path / "out" / "itemsets.csv").open(newline="") as file:
            found = {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in csv.DictReader(file)}
        assert found == brute_force((row for each in DATA.values() for row in each), 36)
    finally:
        relay.kill()
        organisations.stop()
