"""A federation of three parties and a coordinator in one process, none of whom can tell that it is simulated."""

from __future__ import annotations

import asyncio
import functools
import io
import random
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from grpc_reflection.v1alpha import reflection

from coordinator.jobs.lifecycle import ended
from coordinator.jobs.records import store
from coordinator.jobs.records.store import JobFolder, Store
from coordinator.jobs.released import result_of
from coordinator.jobs.runner import drive_job, resume_job, run_job
from crypto.primitives.randomness import Randomness
from jobs.proposed import job_from_canonical
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.core import Transport
from link.errors import ComineError
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity
from link.transports import grpc_channel
from party import server as node_server
from party.config import PartyConfig
from party.jobs.planning import estimate
from party.node.connections import Connections
from party.node.logs import open_log
from party.policy import consent
from party.server import Node
from tests.base_transfers import without_groups
from tests.chaos import disk
from tests.chaos.disk import DISKS, Disk
from tests.chaos.kinds import PARTIES, SmallJob, small_jobs
from tests.chaos.loop import Loop
from tests.chaos.machines import Machine, Process
from tests.chaos.network import Channel, Network, Server
from tests.chaos.transcripts import Transcripts
from tests.remembered import remember_groups_work

COORDINATOR: Final = "hub"
_POLICY: Final = """
[policy]
approve = "auto"
tasks = ["itemsets", "rules", "align", "naive-bayes", "decision-tree", "k-means", "anonymize"]
max_releases = 1000
"""
_CURRENT: list[World] = []


@dataclass(frozen=True)
class Template:
    """What all simulations of this process begin with.

    Attributes:
        folder: Certificates, data and files of all nodes, and their state after a first start and an orderly stop.
        authority: Of all certificates.
        hub: The coordinator.
        configs: By party, its node's file.
        jobs: A small job of every kind.
    """

    folder: Path
    authority: Authority
    hub: Identity
    configs: dict[str, PartyConfig]
    addresses: dict[str, str]
    jobs: dict[str, SmallJob]


def install() -> None:
    """Puts this process, which does nothing but simulations, under simulated randomness, disks and network."""
    disk.install()
    sys.unraisablehook = lambda _: None  # what becomes of the dead's coroutines when they are collected
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # as those of the dead are not
    secrets.token_bytes = _bytes  # type: ignore[assignment]
    secrets.token_hex = lambda size=32: _bytes(size).hex()  # type: ignore[assignment]
    grpc.aio.server = lambda interceptors=(), **_: Server(_CURRENT[-1].network, interceptors)  # type: ignore
    grpc.aio.secure_channel = _channel  # type: ignore[assignment]
    grpc_channel.channel_credentials = lambda identity: identity  # type: ignore[assignment,return-value]
    node_server.FairThreads = _Threads  # type: ignore
    node_server.renewable_credentials = lambda identity: identity  # type: ignore
    Connections.start = lambda self, port: None  # type: ignore[method-assign]
    reflection.enable_server_reflection = lambda names, server: None  # type: ignore
    patch = pytest.MonkeyPatch()
    read_once = functools.lru_cache(maxsize=64)(job_from_canonical)  # a pure function, of which all ask for the same
    for module in (store, consent, estimate):
        patch.setattr(module, "job_from_canonical", read_once)
    remember_groups_work(patch)
    without_groups(patch)


class _Threads:
    """What nodes do off the event loop is done on it, as all that would be done in threads."""

    def __init__(self) -> None:
        self.workers = 1

    def share(self) -> _Threads:
        return self

    async def map(self, kernel: Callable[[Any], Any], chunks: Iterable[Any]) -> list[Any]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, kernel, chunk) for chunk in chunks))

    def close(self) -> None:
        pass


def _bytes(size: int | None = None) -> bytes:
    if not _CURRENT:
        return random.SystemRandom().randbytes(size or 32)
    return _CURRENT[-1].secret(size or 32)


def _channel(address: str, credentials: Any, options: Any) -> Channel:
    return Channel(_CURRENT[-1].network, address, credentials, dict(options)["grpc.ssl_target_name_override"])


def make_template() -> Template:
    """The template of this process; `Template.folder` is to be removed in the end."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="comine-chaos-", dir=shared if shared.is_dir() else None))
    jobs = small_jobs()
    authority = Authority.create()
    authority.write(folder / "pki")
    addresses = {party: f"127.0.0.1:{7001 + place}" for place, party in enumerate(PARTIES)}
    members = "".join(f'[[party]]\nname = "{name}"\naddress = "{address}"\n' for name, address in addresses.items())
    (folder / "federation.toml").write_text(f'[federation]\nname = "chaos"\n{members}')
    hub = authority.issue(COORDINATOR, "coordinator")
    for job in jobs.values():
        job.write(folder)
    configs = {}
    for party, address in addresses.items():
        write_identity(authority.issue(party), folder / "pki")
        datasets = "".join(job.dataset(party) for job in jobs.values())
        pki = f'[tls]\nca = "pki/ca.crt"\ncertificate = "pki/{party}.crt"\nkey = "pki/{party}.key"\n'
        top = f'[party]\nname = "{party}"\nlisten = "{address}"\nstate_dir = "state/{party}"\n'
        top += 'federation = "federation.toml"\n'
        (folder / f"{party}.toml").write_text(top + pki + datasets + _POLICY)
        configs[party] = PartyConfig.load(folder / f"{party}.toml")
    made = Template(folder, authority, hub, configs, addresses, jobs)
    with World.running(made, seed=0, state=folder / "state", fresh=True) as world:
        world.loop.run(_once(world), 60.0)
    return made


async def _once(world: World) -> None:
    await asyncio.gather(*(world.start(party) for party in PARTIES))
    for party in PARTIES:
        process = world.processes[party]
        await world.loop.create_task(world.nodes[party].stop(), context=process.context())


@dataclass
class World:
    """One simulation.

    Attributes:
        template: What it begins with.
        seed: Decides everything.
        folder: The state folders of the nodes.
        loop: Whose time passes.
        network: Between all.
        machines: By name.
        processes: By machine, the one that runs there; a dead one where none does.
        nodes: By party, the node that runs or ran last.
        all_nodes: These and all before.
        logs: By party, what its nodes have logged.
        trace: What has happened, for people; a seed gives the same one every time.
        faults_last: Whether frames still meet faults.
        between: What stands between a party's jobs and their streams.
        transcripts: Of all sessions.
        damaged: By party whose files are not as it has left them, which: "" where that is the whole folder.
        ran_on: Parties whose nodes have run over such files.
    """

    template: Template
    seed: int
    folder: Path
    loop: Loop
    network: Network
    machines: dict[str, Machine]
    processes: dict[str, Process] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    all_nodes: list[Node] = field(default_factory=list)
    logs: dict[str, io.StringIO] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    faults_last: bool = True
    between: Callable[[str, Transport], Transport] = lambda party, transport: transport
    transcripts: Transcripts = field(default_factory=Transcripts)
    damaged: dict[str, str] = field(default_factory=dict)
    ran_on: set[str] = field(default_factory=set)
    _random: Randomness | None = None

    @classmethod
    @contextmanager
    def running(
        cls, template: Template, *, seed: int, state: Path, fresh: bool = False, relayed: frozenset[str] = frozenset()
    ) -> Iterator[World]:
        """A world in which nothing runs yet; nothing of it is left in the end."""
        if not fresh:
            shutil.copytree(template.folder / "state", state)
        loop = Loop(seed)
        world = cls(
            template,
            seed,
            state,
            loop,
            Network(loop, seed, relayed),
            {name: Machine(name) for name in (*PARTIES, COORDINATOR)},
        )
        world.network.log = world.say
        for name in (*PARTIES, COORDINATOR):
            DISKS[name] = Disk(state / name, random.Random(f"disk {seed} {name}"))
            world.logs[name] = io.StringIO()
        world._random = Randomness.from_seed(seed)
        _CURRENT.append(world)
        try:
            yield world
        finally:
            world._dispose()
            _CURRENT.pop()
            DISKS.clear()
            if not fresh:
                shutil.rmtree(state, ignore_errors=True)

    def secret(self, size: int) -> bytes:
        """What the system's randomness gives next."""
        assert self._random is not None
        return self._random.bytes(size)

    def say(self, line: str) -> None:
        """Puts a line into the trace, without the folders of this process, whose names are others in every process."""
        for folder in (self.folder, self.template.folder):
            line = line.replace(f"{folder}/", "")
        self.trace.append(f"{self.loop.now:9.3f}  {line}")

    def told(self) -> str:
        """What the nodes have logged."""
        return "".join(f"{party}:\n{log.getvalue()}" for party, log in self.logs.items() if log.getvalue())

    # -- nodes ---------------------------------------------------------------------------------------------------------
    async def start(self, party: str) -> ComineError | None:
        """A node in a process of its own; why it does not start, where it does not."""
        DISKS[party].find()
        process = self.processes[party] = Process(self.machines[party])
        config = self.template.configs[party]
        config = config.model_copy(update={"party": config.party.model_copy(update={"state_dir": self.folder / party})})
        DISKS[party].lasting = {str(path): path.stat().st_size for path in _files(self.folder / party)}

        async def boot() -> ComineError | None:
            try:
                node = Node(config, open_log(party, self.logs[party]))
                self.nodes[party] = node
                self.all_nodes.append(node)
                link_open = node.link.open
                node.link.open = lambda *given: self.transcripts.of(self.between(party, link_open(*given)))  # type: ignore
                await node.start()
            except ComineError as error:
                process.dead = True
                return error
            return None

        task = self.loop.create_task(boot(), context=process.context())
        await _done_or_dead(task, process)
        problem = task.result() if task.done() else None
        if problem is None and party in self.damaged:
            self.ran_on.add(party)
        self.say(
            f"{party} has started" if problem is None else f"{party} does not start: {problem.code} {problem.message}"
        )
        return problem

    def runs(self, name: str) -> bool:
        """Whether a process runs on a machine."""
        return name in self.processes and not self.processes[name].dead

    def crash(self, name: str, *, power: bool = False) -> None:
        """Ends the process of a machine in the midst of whatever it does."""
        process = self.processes[name]
        process.dead = True
        process.waiting.clear()
        process.over.set()
        DISKS[name].crash(power=power)
        self.network.died(process, silently=power)
        self.say(f"{name} {'loses power' if power else 'is killed'}")

    def stop(self, name: str) -> None:
        """A process stands still."""
        self.processes[name].stopped = True
        self.network.stopped(self.processes[name])
        self.say(f"{name} stands still")

    def go_on(self, name: str) -> None:
        """And goes on."""
        process = self.processes[name]
        if process.stopped:
            process.stopped = False
            waiting, process.waiting = process.waiting, []
            self.loop.again(waiting)
            self.say(f"{name} goes on")

    # -- the coordinator -----------------------------------------------------------------------------------------------
    @property
    def store(self) -> Store:
        """Where the coordinator keeps its jobs."""
        return Store(self.folder / COORDINATOR)

    async def run(self, spec: JobSpec, retries: int = 0) -> Result | ComineError:
        """How a job ends that is run as `comine job run` does; where the coordinator dies, it is taken up again."""
        (self.folder / COORDINATOR).mkdir(exist_ok=True)
        before = {job.id for job in self.store.jobs()}
        while True:
            work = run_job(spec, self.template.hub, self.template.addresses, store=self.store, retries=retries)
            ended_so = await self._as_coordinator(work)
            if ended_so is not None:
                return ended_so
            while begun := [job for job in self.store.jobs() if job.id not in before]:
                ended_so = await self._as_coordinator(self._taken_up(begun[0]))
                if ended_so is not None:
                    return ended_so

    async def resume(self, folder: JobFolder) -> Result | ComineError | None:
        """How another attempt of a job ends; None where the coordinator dies."""
        return await self._as_coordinator(resume_job(folder, self.template.hub, self.template.addresses))

    async def _taken_up(self, folder: JobFolder) -> Result:
        """As `comine job drive`."""
        assert folder.lock()
        try:
            record = folder.record()
            driver = await drive_job(record, self.template.hub, self.template.addresses, folder)
            if driver.result is None:
                if record.job.state != "succeeded":
                    raise ended(record.job) from driver.error
                return result_of(record, record.released, folder.table(), signer=self.template.hub)
            return driver.result
        finally:
            folder.unlock()

    async def _as_coordinator(self, work: Any) -> Any:
        if not self.runs(COORDINATOR):
            DISKS[COORDINATOR].find()
            self.processes[COORDINATOR] = Process(self.machines[COORDINATOR])
        process = self.processes[COORDINATOR]

        async def guarded() -> Result | ComineError:
            try:
                found: Result = await work
            except ComineError as error:
                return error
            return found

        task = self.loop.create_task(guarded(), context=process.context())
        await _done_or_dead(task, process)
        if process.dead:
            await asyncio.sleep(1.0)
            return None
        return task.result()

    def _dispose(self) -> None:
        for process in self.processes.values():
            process.dead = True
        self.loop.dispose()
        for node in self.all_nodes:
            for each in (node.store, node.releases, node.frequency, node.shuffler, node.anonymization):
                each.close()
            node.audit.close()
            node.unlock()
        self.all_nodes.clear()
        self.nodes.clear()
        disk.close_handles()


async def _done_or_dead(task: asyncio.Task[Any], process: Process) -> None:
    """Waits until a task of a process is done, or the process is dead."""
    process.over.clear()
    task.add_done_callback(lambda _: process.over.set())
    await process.over.wait()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
