"""Wires a node together: one port for coordinators and peers, health and reflection, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from crypto.primitives.scratch_file import ScratchLimits
from jobs.audit.events import HistoryRestored, NodeStarted, NodeStopped, SettingsReloaded
from jobs.audit.key import AuditKey
from jobs.federation import Federation
from jobs.metrics_section import MetricsSection
from link.errors import ComineError, ResourceError
from link.executor import FairThreads
from link.files.scratch import remove_abandoned
from link.logs.lines import LogLines
from link.logs.structured import LibraryLines, Log
from link.pki.certificates import read_certificate
from link.pki.identity import Identity, Role
from link.relay.address import RelayAddress
from link.runtime.exposition import Exposition
from link.runtime.service_manager import ServiceManager
from link.transports.grpc_channel import SERVER_OPTIONS, renewable_credentials
from link.transports.grpc_transport import PATIENCE_S, NodeLink
from link.transports.grpc_transport import SERVICE as LINK_SERVICE
from link.transports.serving import Serving
from link.version import software_version
from mining.data.copies import COPIES
from mining.joint.hybrid.spool_limits import SpoolLimits
from party.config import AUDIT_KEY, AUDIT_LOG, RESULTS, DatasetSection, PartyConfig
from party.console.hosting import hosted, pushes_of
from party.data.shared_sources import alike
from party.data.sources import BLOCKS, SCRATCH, Sources
from party.identity import check_identity
from party.jobs.alignments import FOLDER as ALIGNMENTS
from party.jobs.alignments import Alignments
from party.jobs.context import JobContext
from party.jobs.endings.holding import forget_held
from party.jobs.endings.tables import ReleasedTables
from party.jobs.limits import JobLimits
from party.jobs.planning.estimate import Estimates
from party.jobs.service import ControlService
from party.jobs.session_host import SessionHost
from party.node.connections import Connections, most_connections
from party.node.descriptors import take_all_descriptors
from party.node.health import RELAY_SERVICE, note_port
from party.node.interceptors import Gate
from party.node.logs import open_node_log
from party.node.memory import return_freed_arrays
from party.node.node_health import NodeHealth
from party.node.probe import Probe
from party.node.relayed import Relayed
from party.node.reloader import Reloader
from party.node.settings import Settings, changes, check_reloadable, read_settings
from party.policy.consent import Consent
from party.policy.judge import Judge
from party.policy.policy_input import noise_protects
from party.services.anonymization.releases import FILE as RELEASES
from party.services.anonymization.releases import Releases
from party.services.frequency.service import SERVICE as FREQUENCY_SERVICE
from party.services.frequency.service import FrequencyService
from party.services.metrics.metrics import Metrics, State
from party.services.notices.notices import Notices
from party.services.queries.service import SERVICE as ANONYMIZATION_SERVICE
from party.services.queries.service import AnonymizationService
from party.services.shuffler.service import SERVICE as SHUFFLER_SERVICE
from party.services.shuffler.service import ShufflerService
from party.state.audit_count import AuditCount
from party.state.database import locked
from party.state.journals import Journals
from party.state.kept_notices import KeptNotices
from party.state.ledger import Ledger
from party.state.leftovers import remove_leftovers
from party.state.node_audit import NodeAudit
from party.state.node_database import FILE
from party.state.plan_count import PlanCount
from party.state.recovery import companions
from party.state.recovery.heads import hold
from party.state.recovery.history import note, reconcile
from party.state.recovery.seen_entries import SeenEntries
from party.state.reloads import Reloads
from party.state.state_folder import StateFolder, writable
from party.state.store import Store
from party.state.upkeep import Upkeep
from protos.v1 import anonymization_pb2_grpc, control_pb2_grpc, frequency_pb2_grpc, shuffle_pb2_grpc

CONTROL_SERVICE: Final = "comine.v1.Control"
SERVICES: Final = (CONTROL_SERVICE, LINK_SERVICE, FREQUENCY_SERVICE, SHUFFLER_SERVICE, ANONYMIZATION_SERVICE)
CLOSE_S: Final = 3.0  # for streams to peers, or clusters, that do not answer
OUTBOUND: Final = "127.0.0.1:0"  # where a node listens that only dials out
OF_A_RELAYED: Final = 3  # descriptors of each connection that a relay makes: to it, and both ends at the loopback
MAX_STREAMS: Final = 256  # of one connection
GRACE_S: Final = 1.0  # for calls under way when the node stops; its jobs have ended by then


class Node:
    """A party's node. `start` it, and `stop` it in the same event loop.

    Args:
        config: The node's file.
        log: Where it reports what it does.
        patience_s: Seconds for which a peer may be away before it counts as lost.

    Raises:
        ConfigurationError: The federation file is wrong, or does not know this party; or another node uses the state
            folder.
        IdentityError: The certificate is not this party's, or not valid.
        ResourceError: The state folder cannot be written.

    Attributes:
        link: Carries the frames of its jobs.
        sources: Of its datasets.
        store: Its jobs.
        ledger: What its datasets have spent.
        audit: Its log of what it disclosed.
        frequency: The service for collections.
        shuffler: The service for routes.
        anonymization: The service for queries and releases.
        control: The service for jobs.
        plans: How often coordinators have asked for plans.
        releases: What has been made of its rows.
        server: What answers calls, once the node has started.
        upkeep: Forgets what is over.
        settings: What its files say, as it goes by them.
    """

    def __init__(self, config: PartyConfig, log: Log, *, patience_s: float = PATIENCE_S) -> None:
        federation = Federation.load(config.party.federation)
        config.check_federation(federation)
        identity = config.tls.identity(federation.pins)
        check_identity(identity, config)
        self.settings = Settings(config, federation, identity)
        self.name, self._listen, self._log = config.party.name, config.party.listen or OUTBOUND, log
        self._relay = RelayAddress.parse(federation.addresses[self.name])
        self._relayed: Relayed | None = None
        self._before: tuple[DatasetSection, ...] = ()  # datasets under earlier settings
        self._reloading = asyncio.Lock()
        self._executor = FairThreads()
        self.link = NodeLink(identity, federation.addresses, patience_s=patience_s)
        self._folder = StateFolder(config.party.state_dir)
        state = self._folder.path
        self._lock: int | None = locked(state / FILE)  # before anything there is read, which may mend what is torn
        self.sources = Sources(
            config.dataset, self._executor, config.withheld, state / BLOCKS, config.party.memory_share
        )
        with contextlib.ExitStack() as undo:
            undo.callback(self.unlock)
            undo.callback(self._folder.withdraw)
            self._open(config, federation, identity, state, undo)
            undo.pop_all()
        self.server: Serving | None = None

    def _open(
        self,
        config: PartyConfig,
        federation: Federation,
        identity: Identity,
        state: Path,
        undo: contextlib.ExitStack,
    ) -> None:
        log = self._log
        remove_leftovers(state, log)
        remove_abandoned(state, SCRATCH)
        forget_held(state)
        remove_abandoned(Path(tempfile.gettempdir()), COPIES)
        if removed := self.sources.remove_stale():
            log.info("stale blocks removed", folders=removed)
        ran_before = (state / AUDIT_KEY).exists()
        self.store = Store.open(state / FILE)
        undo.callback(self.store.close)
        self.ledger, self.plans = Ledger.beside(self.store), PlanCount.beside(self.store)
        self.audit = NodeAudit.open(state / AUDIT_LOG, identity)
        undo.callback(self.audit.close)
        self.audit.party, self.audit.log = self.name, log
        restored = reconcile(
            self.store,
            self.ledger,
            self.plans,
            self.audit,
            self.name,
            ran_before=ran_before,
            noted=lambda spec: not noise_protects(spec, config.totals_of(spec.job.dataset)),
        )
        if any(restored):
            self.audit.append(HistoryRestored(jobs=restored.jobs, starts=restored.starts))
            log.warning("history restored", jobs=restored.jobs, starts=restored.starts)
        self.audit.count = AuditCount(self.store.bins(), self.store.coordinator_of)
        members = tuple(federation.addresses)
        self.releases = Releases.open(state / RELEASES, self.name, alike(config.dataset))
        undo.callback(self.releases.close)
        judge = Judge(config, members, self.store, self.ledger, self.releases)
        self.metrics = Metrics()
        pushes = pushes_of(config, log, self.metrics.pushed)
        kept = KeptNotices.beside(self.store)
        self.notices = Notices(config.notify, identity, self.store, judge, kept, log, pushes)
        self.host = SessionHost(
            JobContext(
                identity=identity,
                consent=Consent(judge, identity, self.store, self.audit),
                store=self.store,
                journals=Journals.beside(self.store, self.name, config.party.journal_bytes),
                seen=SeenEntries.beside(self.store),
                ledger=self.ledger,
                releases=self.releases,
                audit=self.audit,
                audit_key=AuditKey.open(state / AUDIT_KEY),
                sources=self.sources,
                link=self.link,
                executor=self._executor,
                results=writable(state / RESULTS),
                tables=ReleasedTables(writable(state / "released")),
                alignments=Alignments(writable(state / ALIGNMENTS)),
                limits=JobLimits.of(config),
                notices=self.notices,
                metrics=self.metrics,
                spool_limits=SpoolLimits(config.party.report_memory, state),
                list_limits=ScratchLimits(config.party.alignment_memory, state),
                log=log,
            )
        )
        self.upkeep = Upkeep(config, self.store, self.audit, self.host.unsettled, log)
        self._health = NodeHealth(Probe(state), log)
        estimates = Estimates(config, judge, self.plans, self._executor, self.audit, identity)
        self._estimates, self.control = estimates, ControlService(config, members, self.host, identity, estimates)
        self.frequency = FrequencyService(config.frequency, state, self.name, self.audit, log)
        undo.callback(self.frequency.close)
        self.shuffler = ShufflerService(config.shuffler, state, identity, federation.addresses, self.audit, log)
        undo.callback(self.shuffler.close)
        self.anonymization = AnonymizationService(
            config.dataset, state, self.name, self.releases, self.sources, self._executor, self.audit, log
        )
        undo.callback(self.anonymization.close)
        hold(self.store, self.audit, log, self.frequency, self.shuffler, self.anonymization)

    async def start(self) -> str:
        """Begins to answer, and returns the address.

        Raises:
            ResourceError: The port is taken, or the audit log cannot be written.
        """
        most = most_connections() // (1 if self._relay is None else OF_A_RELAYED)
        connections = self._connections = Connections(self._log, most)
        self.link.met, self.link.read = self._met, connections.read
        self._gate = Gate(self.link.identity, self._log, self._met, connections.read, self.metrics.answered)
        server = grpc.aio.server(
            interceptors=[self._gate],
            options=[
                *SERVER_OPTIONS,
                ("grpc.max_concurrent_streams", MAX_STREAMS),
                ("grpc.max_allowed_incoming_connections", most),
            ],
        )
        self.link.register(server)
        control_pb2_grpc.add_ControlServicer_to_server(self.control, server)
        frequency_pb2_grpc.add_FrequencyEstimationServicer_to_server(self.frequency, server)
        shuffle_pb2_grpc.add_ShufflerServicer_to_server(self.shuffler, server)
        anonymization_pb2_grpc.add_AnonymizationServicer_to_server(self.anonymization, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        host = self._listen.rpartition(":")[0]
        credentials = renewable_credentials(lambda: self.settings.identity)  # of one server: gRPC shows the first once
        try:
            port = server.add_secure_port(self._listen, credentials)
        except RuntimeError:
            raise ResourceError(
                f"{self.name} cannot listen at {self._listen}: another process holds the port, or the address is not "
                "this machine's; stop that process or change [party] listen"
            ) from None
        self._exposition = None if self.settings.config.metrics is None else self._expose(self.settings.config.metrics)
        try:
            await self.audit.record(NodeStarted.now(software_version()))
        except ResourceError as error:  # who starts the node is no stranger, and looks at its log while reading this
            raise (error.__cause__ if isinstance(error.__cause__, ComineError) else error) from None
        self.server = Serving(server)
        await self.host.recover()
        self.upkeep.start()
        self.notices.start()
        await self.frequency.start()
        await self.shuffler.start()
        await self.server.start()
        connections.start(port)
        if self._relay is not None:
            await self._dial_out(self._relay, port)
        for name in self.sources.missing():
            self._log.warning("source missing", dataset=name)
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        address = f"{host}:{port}"
        self._log.info("ready", address=address, software=software_version())
        return address

    async def _dial_out(self, relay: RelayAddress, port: int) -> None:
        """Begins to wait at a relay for callers.

        Raises:
            ResourceError: The state folder cannot be written.
        """
        note_port(self.audit.path.parent, port)

        async def tell(connected: bool) -> None:
            status = health_pb2.HealthCheckResponse
            await self._health.set(RELAY_SERVICE, status.SERVING if connected else status.NOT_SERVING)

        await tell(False)
        self._relayed = Relayed(lambda: self.settings.identity, relay, port, self._connections, self._log, tell)
        self._relayed.start()

    @property
    def metrics_address(self) -> str:
        """Where the metrics are shown; empty where they are not."""
        return "" if self._exposition is None else self._exposition.address

    async def reload(self, path: Path) -> tuple[str, ...]:
        """Reads the node's files anew, and goes on under what they say; jobs that run go on under what they began with.

        Args:
            path: The node's file.

        Returns:
            What has changed, by its place in the files.

        Raises:
            ComineError: The files are wrong, or say what only a restart can bring about; nothing has changed then.
        """
        async with self._reloading:
            new, digests = await asyncio.to_thread(read_settings, path)
            await asyncio.to_thread(check_reloadable, self.settings, new, path, self._before)
            changed = changes(self.settings, new)
            if not changed:
                return ()
            before = (*self._before, *(each for each in self.settings.config.dataset if each not in self._before))
            config, members, context = new.config, tuple(new.federation.addresses), self.host.context
            judge = await asyncio.to_thread(Judge, config, members, self.store, self.ledger, self.releases, before)
            self.anonymization.check(config.dataset, self.store)
            async with context.starting:  # no start is judged by the one and charged by the other
                await self.audit.record(SettingsReloaded(**digests, changed=changed))
                self.settings, self._before = new, before
                self.audit.renew(new.identity)
                self.sources = self.sources.renewed(config.dataset, config.withheld, config.party.memory_share)
                self.releases.renew(judge.alike)
                self.host.renew(
                    replace(
                        context,
                        identity=new.identity,
                        consent=Consent(judge, new.identity, self.store, self.audit),
                        sources=self.sources,
                        limits=JobLimits.of(config),
                    )
                )
                self.upkeep.renew(config)
                self.notices.renew(config.notify, new.identity, judge)
                self._estimates.renew(config, judge, new.identity)
                self.control.renew(config, members, new.identity)
                self.frequency.renew(config.frequency)
                self.shuffler.renew(config.shuffler)
                self._gate.trust = new.identity.trust
            await self.anonymization.renew(config.dataset, self.sources, judge.alike)
            await self.link.renew(new.identity, new.federation.addresses)
            if self._relayed is not None and "[tls]" in changed:
                await self._relayed.renew()
        self._log.info("settings reloaded", changed=len(changed))
        for name in self.sources.missing():
            self._log.warning("source missing", dataset=name)
        return changed

    async def stop(self) -> None:
        """Cancels running jobs at all parties, lets calls end, and closes all connections."""
        if self.server is not None:
            self._log.info("stopping", jobs=self.host.running)
            await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
            await self.upkeep.stop()
            await self._connections.stop()
            if self._exposition is not None:
                await asyncio.to_thread(self._exposition.close)
            await self.host.close()
            await self.notices.stop()
            await self.frequency.stop()
            await self.shuffler.stop()
            await self.anonymization.stop()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self.link.close()
            await self.sources.close(CLOSE_S)
            await self.server.stop(GRACE_S)
            if self._relayed is not None:
                await self._relayed.stop()
            with contextlib.suppress(ComineError):  # the log has the reason
                await self.audit.record(NodeStopped())
                companions.note(self.store, self.audit.path.parent)
                note(self.store, self.audit, self.audit.mark(), self.name)
            self._log.info("stopped")
        self._executor.close()
        self.store.close()
        self.releases.close()
        self.frequency.close()
        self.shuffler.close()
        self.anonymization.close()
        self.audit.close()
        if self.server is None:
            self._folder.withdraw()
        self.unlock()

    def unlock(self) -> None:
        """Lets another process use the state folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _met(self, peer: str, role: Role, name: str) -> None:
        self._connections.met(peer, role, name)
        self.metrics.called(role, name)

    def _expose(self, settings: MetricsSection) -> Exposition:
        config = self.settings.config
        self.metrics.show(
            State(
                running=lambda: self.host.running,
                waiting=lambda: self.host.waiting,
                undecided=lambda: self.host.undecided,
                held=lambda: self.host.held,
                certificate_ends=self._certificate_ends,
                disk_free=lambda: shutil.disk_usage(config.party.state_dir).free,
                budget_used=lambda: float(self.host.context.consent.judge.most_used()),
            )
        )
        return Exposition(settings.listen, self.metrics.registry)

    def _certificate_ends(self) -> float:
        return read_certificate(self.settings.identity.certificate_pem).not_valid_after_utc.timestamp()

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        for service in ("", *SERVICES):
            await self._health.set(service, status)


async def serve(path: Path) -> None:
    """Runs the node of a `party.toml` until SIGTERM or SIGINT.

    At SIGHUP, where that is not ignored, as under `nohup`, it reads its files anew. Its service
    manager is told how it is.

    Raises:
        ComineError: The node cannot start; the sentence says why.
    """
    manager = ServiceManager.of_environment()
    return_freed_arrays()
    take_all_descriptors()
    config = PartyConfig.load(path)
    lines = LogLines(sys.stderr.fileno())
    log = open_node_log(config.party.name, lines)
    logging.basicConfig(handlers=[LibraryLines(log)], level=logging.WARNING, force=True)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    hung_up = asyncio.Event()
    for number, event in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, hung_up)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, event.set)
    with contextlib.redirect_stderr(lines):  # nothing that Python says may wait for who reads
        try:
            node = Node(config, log)

            async def reload(path: Path) -> tuple[str, ...]:
                with manager.reloading():
                    return await node.reload(path)

            try:
                address = await node.start()
                lines.write(f"{node.name} is ready at {address}\n")
                manager.ready()
                reloader = Reloader(reload, path, Reloads.beside(node.store), hung_up, log)
                async with reloader, hosted(config, path, log):
                    await stop.wait()
                manager.stopping()
            finally:
                await node.stop()
        finally:
            lines.finish()
