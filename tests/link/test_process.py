"""A peer in a process of its own, killed without a warning."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import grpc

from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity
from link.transports.conformance.kit import AB
from link.transports.conformance.messages import Note
from link.transports.grpc_channel import SERVER_OPTIONS, server_credentials
from link.transports.grpc_transport import NodeLink
from link.transports.serving import Serving
from tests.errors import fails
from tests.link.kits import greet, run
from tests.world import nodes, terms

ROOT = Path(__file__).resolve().parents[2]
TERMS = terms(AB)


async def node(folder: Path) -> None:
    """Party b: tells its port, greets, sends notes for ever."""
    identity = Identity.load(folder / "ca.crt", folder / "b.crt", folder / "b.key")
    link, server = NodeLink(identity, {"a": "127.0.0.1:1"}), grpc.aio.server(options=SERVER_OPTIONS)
    link.register(server)
    port = server.add_secure_port("127.0.0.1:0", server_credentials(identity))
    serving = Serving(server)
    await serving.start()
    print(port, flush=True)
    session = await greet("b", link.open(TERMS.job_id, AB), TERMS)
    while True:
        await session.send("a", Note(number=1))
        await session.recv("a", Note)


def test_a_killed_process_is_missed(tmp_path):
    authority = Authority.create()
    authority.write(tmp_path)
    write_identity(authority.issue("b"), tmp_path)

    async def main():
        work = f"asyncio.run(node(pathlib.Path({str(tmp_path)!r})))"
        script = f"import asyncio, pathlib; from tests.link.test_process import node; {work}"
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            port = int(await child.stdout.readline())
            async with nodes({"a": authority.issue("a")}, patience_s=0.5) as links:
                links["a"].addresses["b"] = f"127.0.0.1:{port}"
                session = await greet("a", links["a"].open(TERMS.job_id, AB), TERMS)

                async def talk(rounds: int) -> None:
                    for _ in range(rounds):
                        await session.recv("b", Note)
                        await session.send("b", Note())

                await talk(20)
                child.kill()
                with fails("E200", party="b") as lost:
                    await talk(1_000_000)
                assert lost.value.party == "b"
        finally:
            if child.returncode is None:
                child.kill()
            await child.communicate()

    run(main())
