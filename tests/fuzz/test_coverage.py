"""Every place that reads what somebody else may have written has a fuzzer; a new one without fails here.

`READ` names the functions that open a file or parse bytes, by the fuzzer whose bytes reach them: a kind of a table in
one of the modules beside this one, or a test there. Methods of nodes are held in the same way by
`test_calls.test_every_method_has_an_honest_request`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.fuzz import readers, test_blocks, test_calls, test_files, test_records, test_state, test_table_blocks

ROOT = Path(__file__).parents[2]
LAYERS = (
    *("anonymize", "client", "comine", "console", "coordinator", "crypto", "jobs", "ldp", "link", "mining", "party"),
    "relay",
)
PARSERS: Final = frozenset(
    {
        *("read_json", "read_toml", "read_text", "read_bytes", "model_validate_json", "decompress"),
        *("read_table", "ParquetFile", "open_stream", "OSFile", "read_csv", "DictReader", "open_file"),
        *("read_certificate", "read_key", "read_revocations", "load_request"),
        *(
            "load_pem_x509_certificate",
            "load_der_x509_certificate",
            "load_pem_private_key",
            "load_pem_x509_crl",
            "load_pem_x509_csr",
        ),
    }
)
PARSERS_OF: Final = {  # by module: what is called there by a common name
    "loads": {"json", "tomllib", "pickle"},
    "load": {"json", "tomllib", "pickle", "np"},
    "connect": {"sqlite3", "duckdb"},
    "reader": {"csv"},
}
MODULES: Final = {
    "blocks": test_blocks,
    "calls": test_calls,
    "files": test_files,
    "records": test_records,
    "state": test_state,
    "tables": test_table_blocks,
}
TABLES: Final = {
    "blocks": test_blocks.FORMS.keys(),
    "calls": {" ".join(pair) for pair in test_calls.REQUESTS},
    "files": readers.READERS.keys(),
    "records": test_records.UNPACK.keys(),
    "state": test_state.STATE.keys(),
    "tables": test_table_blocks.FORMS.keys(),
}
OWN: Final = "what this process wrote just before or a child of it says, comine's own pages, figures of the machine"
JUDGED: Final = "what was judged when it arrived, or is handed on as bytes; its answers are in tests of the service"

CALLS: Final = re.compile(rf"\b(?:{'|'.join(sorted({*PARSERS, *PARSERS_OF, 'open'}))})\s*\(")
"""In the text of a module that calls any of them; it takes seconds to take all modules apart."""

READ: Final[dict[str, tuple[str, ...]]] = {
    OWN: (
        "party.operations_cli:monitoring",
        "coordinator.anonymisation.releases:ReleasingNode._checked",
        "coordinator.cli.docs:docs",
        "coordinator.console.form:_typed",
        "coordinator.cli.explain:_page",
        "coordinator.demo.story:households",
        "coordinator.demo.run:_make_room",
        "comine.quickstart.run:_is_earlier",
        "coordinator.frequency.files:_rewrite",
        "jobs.collections.reading:collection_as_data",
        "coordinator.demo.local_process:_listening",
        "coordinator.demo.local_process:peak_bytes",
        "coordinator.demo.loopback:_last_line",
        "jobs.report.page:_block",
        "jobs.schema.__init__:published",
        "link.runtime.memory_limit:_number",
        "link.runtime.memory_limit:_of_groups",
        "mining.partitioned.encoding.encode:_dictionary",
        "mining.partitioned.encoding.encode:_finished",
        "mining.partitioned.tables.dictionaries:_on_disk",
        "mining.partitioned.tables.dictionaries:pieces_of",
        "mining.hiding.exact:searched_apart",
        "mining.partitioned.spark.shipping:write_packages",
        "mining.partitioned.spark.worker:read_names",
        "mining.hiding.search_process:main",
        "mining.partitioned.processes:_part",
        "party.services.anonymization.runs:Runs._crashed",
        "party.services.anonymization.runs:Runs._read",
        "party.services.anonymization.service:ReleaseService._keep",
        "party.services.anonymization.service:_parts",
        "party.services.anonymization.worker:_write_rows",
        "party.services.anonymization.worker:main",
        "party.services.notices.post:main",
        "party.state.holds:Holds.held",
        "party.console.jobs:_tables",
        "party.node.health:_own_port",
        "jobs.new_federation:render",
        "party.init_files:render_federation",
        "party.init_files:render_party",
    ),
    JUDGED: (
        "link.relay.gateway:Gateway.socket",
        "party.console.jobs:_report",
        "party.console.policy_change:_alone",
        "party.console.policy_change:_put_back",
        "party.console.policy_change:opened",
        "party.console.policy_fields:_toml",
        "party.console.scattered_tables:_is_whole",
        "party.console.scattered_tables:_piece",
        "relay.metrics:RelayMetrics.show.ends",
        "coordinator.anonymisation.releases:ReleasingNode.datasets",
        "coordinator.anonymisation.releases:listing_as_data",
        "coordinator.anonymisation.releases:rules_of",
        "coordinator.shuffle.submit:ShuffledConnection._sealed",
        "coordinator.shuffle.routes:RouteStatus.keys",
        "party.services.frequency.export:_round",
        "party.services.frequency.export:collection_json",
        "party.jobs.endings.tables:ReleasedTables.read",
        "party.jobs.queue_note:noted",
        "party.policy.joint_result:columns_taken",
        "party.policy.joint_result:other_columns",
        "party.node.settings:_digest",
        "party.peers:_coordinator",
    ),
    "files certificate": (
        "coordinator.doctor:_certificate_days",
        "coordinator.doctor:days_left",
        "jobs.audit.checks.contents:_certificate",
        "jobs.audit.checks.lapse:check_author",
        "jobs.audit.checks.lapse:timeless",
        "jobs.audit.log:AuditLog.__init__",
        "jobs.audit.log:AuditLog.renew",
        "jobs.audit.checks.results:_pem",
        "link.pki.identity:_parsed",
        "link.pki.identity:_read",
        "party.examination:_certificate",
        "party.policy.standing:_print",
        "party.node.settings:read_settings",
        "party.server:Node._certificate_ends",
        "party.services.notices.notices:Notices._expiring",
    ),
    "files evidence": ("jobs.audit.evidence:read_evidence",),
    "files key": (
        "link.pki.certificates:read_key",
        "link.pki.identity:_private_key",
    ),
    "files shown-certificate": ("link.pki.tls_files:_read", "link.pki.tls_files:load_pair"),
    "files pki-certificate": (
        "link.pki.authority:Authority.has_issued",
        "link.pki.authority:Authority.read",
        "link.pki.authority:_set_aside",
        "link.pki.issued:_describe",
        "link.pki.issued:_of_authority",
    ),
    "files request": (
        "link.pki.certificates:load_request",
        "link.pki.requests:read_request",
        "link.pki.signing:_owner",
    ),
    "files key-of-request": (
        "coordinator.cli.pki:request",
        "link.pki.requests:make_request",
    ),
    "files composed-job": ("jobs.spec.toml:parse_toml",),
    "files pki-key": ("link.pki.authority:Authority.signer",),
    "files pki-list": (
        "link.pki.authority:Authority.revoke",
        "link.pki.issued:_revoked",
    ),
    "files list": (
        "link.pki.certificates:read_revocations",
        "link.pki.revocation:RevocationList._refresh",
        "link.pki.revocation:read_list",
    ),
    "files job": (
        "jobs.loading:load_envelope",
        "jobs.spec.toml:read_toml",
        "comine.support_bundle:support_bundle",
    ),
    "files completion": ("coordinator.cli.terminal.completion:parties_of_job",),
    "files catalogue": ("jobs.loading:_read_catalogue",),
    "files federation": ("jobs.federation:Federation.load",),
    "files relay": ("relay.config:RelayConfig.load",),
    "files relay-authority": (
        "link.relay.handshake:authority_digest",
        "relay.config:FederationSection.trust",
    ),
    "files party": ("party.config:PartyConfig.load", "party.examination:_former", "party.node_file:NodeFile.load"),
    "files audited-party": ("jobs.audit.place:of_party",),
    "files authority": ("jobs.audit.place:trust_in",),
    "files collection": ("jobs.collections.spec:CollectionSpec.load",),
    "files labels": ("jobs.collections.spec:_read_labels",),
    "files route": ("jobs.collections.route:RouteSpec.load",),
    "files anonymize": (
        "jobs.anonymization.inputs:read_rows",
        "jobs.anonymization.inputs:read_source",
        "jobs.anonymization.spec:read_spec",
    ),
    "files hierarchy": ("anonymize.hierarchies.files:from_csv",),
    "files hierarchy-json": ("anonymize.hierarchies.files:from_json",),
    "files rules": ("coordinator.anonymisation.rule_hiding:read_rules",),
    "files values": ("coordinator.frequency.values:lines",),
    "records test_a_result_of_a_cluster_made_wrong": (
        "mining.partitioned.spark.values:_value",
        "mining.partitioned.spark.values:from_bytes",
    ),
    "blocks parquet": ("mining.partitioned.encoding.pieces:_from_parquet",),
    "blocks long": ("mining.partitioned.encoding.grouping:_sorted",),
    "blocks test_the_memory_of_a_source_is_estimated": (
        "mining.partitioned.encoding.expected:expected_bytes",
        "mining.partitioned.tables.expected:_beginning",
        "mining.partitioned.tables.expected:_of_text",
    ),
    "blocks test_stored_blocks_are_the_same_or_refused": (
        "mining.partitioned.encoding.writing:read_table",
        "mining.partitioned.stored:StoredRows.open",
        "mining.partitioned.stored:digest_of_file",
        "mining.partitioned.stored:read_block",
    ),
    "tables parquet-table": ("mining.data.formats.table_readers:parquet_batches",),
    "tables test_stored_tables_are_the_same_or_refused": (
        "mining.partitioned.tables.blocks:TableBlock.table",
        "mining.partitioned.tables.stored:StoredTable.open",
        "mining.partitioned.tables.stored:StoredTable.value_counts",
    ),
    "files basket": (
        "mining.data.formats.text_files:_opened",
        "mining.data.loading:load_transactions",
    ),
    "files long": (
        "mining.data.formats.csv_text:_check_strictly",
        "mining.data.formats.csv_text:_first_ragged_line",
        "mining.data.formats.csv_text:line_of_record",
        "mining.data.formats.csv_text:read_header",
        "mining.data.formats.text_sources:from_records",
        "mining.data.source_format:_guess_columns",
        "mining.data.source_format:_guess_text",
        "mining.data.source_format:_head",
    ),
    "files table": (
        "anonymize.reading:_ragged",
        "anonymize.reading:read_csv",
        "mining.data.formats.table_readers:table_from_csv_file",
    ),
    "files parquet-items": ("mining.data.formats.table_sources:from_parquet",),
    "files parquet-table": (
        "anonymize.reading:read_parquet",
        "mining.data.formats.table_readers:table_from_parquet",
    ),
    "files copied-csv": (
        "mining.data.copies:_recoded",
        "mining.data.schemes.local_files:LocalFiles.opened",
    ),
    "files copied-parquet": ("mining.data.formats.parquet_files:join_parquet",),
    "files workbook": ("mining.data.copies:head_of",),
    "files block-csv": ("anonymize.blocks.sources:CsvBlocks.__init__",),
    "files block-parquet": (
        "anonymize.blocks.sources:ParquetBlocks.__init__",
        "anonymize.blocks.sources:ParquetBlocks.blocks",
    ),
    "files sorted-run": (
        "anonymize.blocks.counted_rows:CountedRows._written",
        "anonymize.blocks.counted_rows:_Run.__init__",
    ),
    "files sqlite": (
        "anonymize.reading:_from_sqlite",
        "mining.data.schemes.sqlite:Sqlite.records",
    ),
    "files duckdb": (
        "anonymize.reading:_from_duckdb",
        "mining.data.schemes.duckdb_file:DuckDb.query",
    ),
    "files verified-csv": ("anonymize.verification.rows:read_csv",),
    "files verified-parquet": ("anonymize.verification.rows:read_parquet",),
    "files release-certificate": ("anonymize.certificate:Document.read",),
    "files release-csv": (
        "anonymize.certificate:sha256_of",
        "anonymize.verification.rows:read_release",
        "anonymize.verifier:_findings",
    ),
    "files release-manifest": (
        "jobs.results.manifest:_read",
        "jobs.results.manifest:_sha256",
    ),
    "files rows-of-a-node": ("coordinator.anonymisation.releases:ReleasingNode.complete",),
    "files mechanism": ("ldp.documents:mechanism_of",),
    "files ledger": ("ldp.streams.ledger:WindowLedger.from_bytes",),
    "files budget": ("client.budget:Budget.from_bytes",),
    "files remembered": ("party.state.recovery.remembered:remembered",),
    "files named": ("mining.joint.blended.mine:unpacked",),
    "files names": ("mining.joint.distributed.selection:unpacked",),
    "files step": ("link.encoding.values:unpack",),
    "files json": ("link.files.json_text:read_json",),
    "records model": ("comine.api:load_model",),
    "records release": ("jobs.kinds.release.release:Anonymized.unpack",),
    "records noisy": ("mining.joint.estimated:unpack_estimates",),
    "files console-accounts": ("console.accounts:Accounts._read", "console.turns:taking_turns"),
    "files console-push": ("console.push.subscriptions:Subscriptions._read", "console.push.vapid:key_of"),
    "files console-password": ("console.accounts:read_password",),
    "files console-secret": ("console.oidc:client_secret",),
    "files console-settings": ("coordinator.console.settings:ConsoleFile.load",),
    "records test_a_log_made_wrong": (
        "jobs.audit.entry:_object",
        "jobs.audit.log:AuditLog._head",
        "jobs.audit.reading:LogLines.__init__",
        "party.support:_audit_events",
        "jobs.audit.tail:entries_after",
        "jobs.audit.tail:entry_at",
        "jobs.audit.checks.verify:_Walk.close",
        "jobs.audit.checks.verify:check_log",
    ),
    "records test_a_result_made_wrong_inside": (
        "jobs.audit.checks.account:_holds",
        "jobs.audit.checks.account:_tables",
        "jobs.audit.checks.results:check_result",
        "jobs.audit.checks.results:is_of_a_job",
        "jobs.kinds.estimates_finding:FoundEstimates.differences",
        "jobs.kinds.models.finding:FoundModel.differences",
        "jobs.kinds.packed_tables:_csv_rows",
        "jobs.kinds.packed_tables:_parquet_rows",
        "jobs.kinds.release.finding:FoundRelease.differences",
    ),
    "records test_a_route_made_wrong": ("ldp.shuffling.route:route_of",),
    "calls Control Propose": ("jobs.proposed:job_from_canonical",),
    "calls FrequencyEstimation Create": (
        "jobs.collections.spec:CollectionSpec.from_canonical",
        "party.services.frequency.policy:read_spec",
    ),
    "calls Anonymization Anonymize": ("party.services.anonymization.request:_contents",),
    "state coordinator": (
        "coordinator.jobs.records.acts:acts_in",
        "coordinator.jobs.records.store:JobFolder.cancel_asked",
        "coordinator.jobs.records.store:JobFolder.record",
        "coordinator.jobs.records.store:_read",
        "coordinator.jobs.records.store:_read_plan",
    ),
    "state collector": (
        "coordinator.shuffle.routes:CollectorFolder.private_key",
        "coordinator.shuffle.routes:CollectorFolder.route",
        "coordinator.shuffle.routes:read_state",
    ),
    "state audit key": ("jobs.audit.key:AuditKey.read",),
    "state jobs": (
        "party.state.database:Kind.look",
        "party.state.database:connect",
        "party.state.journals:Journals._journal",
        "party.policy.inbox:line",
    ),
    "state releases": (
        "party.services.anonymization.kept:KeptReleases._read",
        "party.services.anonymization.kept:KeptReleases.report",
    ),
    "state queries": (
        "party.services.queries.kept:KeptAuditors.read",
        "party.services.queries.log:_digests",
        "party.services.queries.log:_records",
    ),
    "state device": (
        "client.database:Database.open_file",
        "client.description:Description.read",
        "client.store:ClientStore.open",
    ),
    "state gateway": (
        "client.fleet_state.record:FleetRecord.held",
        "client.gateway:GatewaySecret.open",
    ),
    "files sliding-memo": ("ldp.streams.sliding_memo:SlidingMemo.from_bytes",),
    "files stream": ("ldp.streams.methods:restored",),
    "files schedule": ("party.services.frequency.schedule:read_state",),
    "files stream-release": ("party.services.frequency.schedule:release_of",),
}


@cache
def _modules() -> dict[Path, str]:
    return {path: path.read_text() for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))}


def _places() -> Iterator[str]:
    """Every function that calls one of the parsers, as MODULE:NAME."""
    for path, text in _modules().items():
        if not CALLS.search(text):
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for within in _within(ast.parse(text), ()):
            yield f"{module}:{within}"


def _within(node: ast.AST, names: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _within(child, (*names, child.name))
            continue
        if isinstance(child, ast.Call) and _parses(child):
            yield ".".join(names)
        yield from _within(child, names)


def _parses(call: ast.Call) -> bool:
    called = call.func
    if isinstance(called, ast.Name):
        return called.id in PARSERS or (called.id == "open" and _mode(call, "r") == "r")
    if not isinstance(called, ast.Attribute):
        return False
    owner = called.value.id if isinstance(called.value, ast.Name) else ""
    if called.attr in PARSERS_OF:
        return owner in PARSERS_OF[called.attr]
    if called.attr == "open":
        return owner == "gzip" or _mode(call, "") == "r"
    return called.attr in PARSERS


def _mode(call: ast.Call, default: str) -> str:
    """Of a call of `open` what it does, "r" or another letter; `default` where the call does not say."""
    given = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    modes = [mode for mode in given if set(mode) <= set("rwaxbt+")]
    return modes[-1][0] if modes else default


def test_every_reader_has_a_fuzzer() -> None:
    listed = [place for places in READ.values() for place in places]
    assert len(listed) == len(set(listed))
    found = set(_places())
    assert found - set(listed) == set(), "these read what others may have written, and no fuzzer is named for them"
    assert set(listed) - found == set(), "these do not read anything any more"


def test_every_fuzzer_that_is_named_is_there() -> None:
    for fuzzer in READ.keys() - {OWN, JUDGED}:
        module, _, kind = fuzzer.partition(" ")
        assert kind in TABLES[module] or hasattr(MODULES[module], kind), fuzzer


def test_every_kind_of_database_is_among_them() -> None:
    """Kinds of nodes are told by their names, those of clients by their classes."""
    nodes, clients = set(), set()
    for path, text in _modules().items():
        for node in ast.walk(ast.parse(text)) if "Kind(" in text or "Database)" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Kind":
                assert isinstance(node.args[0], ast.Constant), path
                nodes.add(str(node.args[0].value))
            if isinstance(node, ast.ClassDef) and "Database" in [getattr(base, "id", "") for base in node.bases]:
                clients.add(node.name)
    assert nodes == {"job", "frequency", "shuffler", "query", "releases"}
    assert clients == {"ClientStore", "FleetRecord"}
    kinds = {"jobs", "frequency", "shuffler", "queries", "releases", "device", "gateway"}
    assert test_state.STATE.keys() >= kinds
