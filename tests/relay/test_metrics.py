"""What a relay shows Prometheus: how much each member uses of it, in few labels, and nothing of what passes."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from link.pki.identity import Role
from link.relay.calling import call
from protos.v1.relay_pb2 import RelayDial
from relay.members import Caller
from relay.metrics import CLIENTS, NOBODY, RelayMetrics
from tests.errors import fails
from tests.relay.relays import World, relaying, served

SHOWN = '[metrics]\nlisten = "127.0.0.1:0"\n'
Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """By name and values of labels."""
    found = (each for family in text_string_to_metric_families(text) for each in family.samples)
    return {(each.name, *(each.labels[name] for name in sorted(each.labels))): each.value for each in found}


async def scraped(w: World) -> str:
    def read() -> str:
        with urllib.request.urlopen(f"http://{w.relay.metrics_address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(read)


def test_a_relay_shows_who_uses_how_much_of_it(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        listening = await w.listen()
        dialled, accepted, _ = await w.meet(listening, "north", w.member("south"))
        await dialled.send(b"marked-item")
        assert await accepted.recv() == b"marked-item"
        open_ = samples(await scraped(w))
        assert open_["comine_relay_party_connected", "retail/party/north"] == 1
        assert open_["comine_relay_streams", "retail/party/south"] == 1
        await dialled.close()
        await accepted.wait_closed()
        with fails("E200", party="east"):
            await call(w.member("hub", "coordinator"), w.address, RelayDial(to="east"))
        text = await scraped(w)
        found = samples(text)
        assert found["comine_relay_streams", "retail/party/south"] == 0
        assert found["comine_relay_sent_bytes_total", "retail/party/south"] == len(b"marked-item")
        assert found["comine_relay_refused_total", "absent", "retail/coordinator/hub"] == 1
        assert found["comine_relay_stream_duration_seconds_count", "ended"] == 1
        assert found["comine_certificate_expiry_timestamp_seconds",] > 1.7e9
        assert "marked" not in text

    served(tmp_path, test, SHOWN)


def test_a_port_that_is_taken_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    async def test(w: World) -> None:
        file = tmp_path / "relay.toml"
        text = file.read_text().replace("127.0.0.1:0", w.relay.metrics_address or "")
        file.write_text(text.replace(w.address.place, "127.0.0.1:0"))
        with fails("E103"):
            async with relaying(tmp_path):
                pass

    served(tmp_path, test, SHOWN)


def member(role: Role, name: str) -> Caller:
    return Caller("retail", bytes(32), role, name)


def filled() -> RelayMetrics:
    metrics = RelayMetrics()
    metrics.listens(member("party", "north"), connected=True)
    for number in range(100):
        metrics.sent(member("client", f"client-{number}"), 10)
        metrics.refused(None, "identity")
    metrics.began(member("party", "south"))
    metrics.ended(member("party", "south"), "idle", 3.0)
    metrics.show(lambda: Path("no certificate"))
    return metrics


def test_clients_are_one_peer_and_strangers_none() -> None:
    found = samples(generate_latest(filled().registry).decode())
    assert found["comine_relay_sent_bytes_total", f"retail/{CLIENTS}"] == 1000
    assert found["comine_relay_refused_total", "identity", NOBODY] == 100


def test_metrics_are_as_prometheus_wants_them() -> None:
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    text = generate_latest(filled().registry)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
