"""How files of each kind are read, for properties that make honest ones wrong."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import HealthCheck

from anonymize.blocks.counted_rows import merged
from anonymize.blocks.sources import CsvBlocks, ParquetBlocks
from anonymize.hierarchies.files import from_csv, from_json
from anonymize.verification.rows import read_csv, read_parquet
from client.budget import Budget
from console.accounts import Accounts, read_password
from console.oidc import client_secret
from console.push.base64url import written
from console.push.subscriptions import Subscriptions
from console.settings import OidcSection
from coordinator.anonymisation.releases import ROWS as ROWS_OF_A_NODE
from coordinator.anonymisation.releases import ReleasingNode
from coordinator.anonymisation.rule_hiding import read_rules
from coordinator.cli.terminal.completion import parties_of_job
from coordinator.console.compose import read_job
from coordinator.console.settings import ConsoleFile
from coordinator.frequency.values import load_collection
from coordinator.shuffle.routes import read_state
from crypto.primitives.push_encryption import point_of
from jobs.anonymization.inputs import load as load_anonymization
from jobs.anonymization.verifying import verify as verify_folder
from jobs.audit.evidence import read_evidence
from jobs.audit.place import of_party as audited
from jobs.collections.route import RouteSpec
from jobs.collections.spec import CollectionSpec
from jobs.federation import Federation
from jobs.loading import load_job
from ldp.aggregator import Aggregator
from ldp.documents import mechanism_of
from ldp.domain import Domain
from ldp.registry import oracle
from ldp.streams.ledger import WindowLedger
from ldp.streams.method import Release
from ldp.streams.methods import METHODS, restored, stream_method
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import ComineError
from link.files.json_text import read_json
from link.journal import Step
from link.pki.authority import Authority, write_identity
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.pki.issued import show
from link.pki.requests import make_request, read_request
from link.pki.signing import judge, sign
from link.pki.tls_files import load_pair
from link.pki.trust import Trust
from mining.data.loading import load_table, load_transactions
from mining.data.source_format import guess_format
from mining.data.source_options import PLAIN, SourceOptions
from mining.joint.blended.mine import unpacked as unpack_named
from mining.joint.distributed.selection import unpacked as unpack_names
from party.config import PartyConfig
from party.node_file import NodeFile
from party.services.frequency.schedule import packed_result as packed_release
from party.services.frequency.schedule import read_state as read_schedule
from party.services.frequency.schedule import release_of
from party.state.recovery.remembered import remembered
from relay.config import FederationSection, RelayConfig
from tests.examples import examples
from tests.fuzz.honest_files import (
    ANONYMIZE,
    AUTHORITY,
    COLLECTION,
    JOB,
    MODEL,
    PRIVATE,
    aggregator_states,
    arrow_streams,
    baskets_parquet_file,
    certificate_pems,
    duckdb_file,
    kept_steps,
    key_pems,
    ledgers,
    mechanism_documents,
    people_csv,
    people_parquet,
    release_folder,
    revocation_lists,
    signing_requests,
    sliding_memos,
    sorted_runs,
    sqlite_file,
    texts,
)
from tests.jobs.audit.evidence_world import TRUST, file_of
from tests.ldp.streams.test_memo import MECHANISM as MEMOISED
from tests.party.files import federation_toml, party_toml
from tests.party.nodes import weekly
from tests.relay.relays import relay_toml

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
FUZZED = examples(
    EXAMPLES or 10,
    EXAMPLES or 30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Reader:
    """How files of one kind are read.

    Attributes:
        seeds: Honest ones.
        read: Reads the file at a path.
        name: What the file is called.
        allowed: What may come out of it besides errors of comine: faults that the caller translates.
        pem: Whether they are in PEM form.
    """

    seeds: Callable[[Path], Sequence[bytes]]
    read: Callable[[Path], object]
    name: str = "file"
    allowed: tuple[type[Exception], ...] = ()
    pem: bool = False


def _identity(changed: str) -> Callable[[Path], object]:
    """Reads an identity of which one file is another."""

    def read(path: Path) -> object:
        authority = Authority.create() if changed == "ca.crt" else AUTHORITY
        folder = path.parent / "pki"
        folder.mkdir(exist_ok=True)
        authority.write(folder, force=True)
        write_identity(authority.issue("north"), folder, force=True)
        shutil.copy(path, folder / changed)
        os.chmod(folder / changed, 0o600)
        found = Identity.load(folder / "ca.crt", folder / "north.crt", folder / "north.key")
        show(folder)
        return found

    return read


def _shown(path: Path) -> None:
    """Has a server show a certificate; its key is fuzzed as that of an identity."""
    key = path.parent / "shown.key"
    key.write_bytes(SHOWN.key_pem)
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), path, key, "[relay]")


def _signed(path: Path) -> object:
    """Signs whatever is asked for, if it fits; the certificate is one of a member."""
    folder = path.parent / "signing"
    shutil.rmtree(folder, ignore_errors=True)
    AUTHORITY.write(folder)
    write_identity(AUTHORITY.issue("south"), folder)
    signed = sign(folder, judge(folder, read_request(path), None))
    assert AUTHORITY.has_issued(read_certificate(signed.read_bytes()))
    return signed


def _pki(changed: str) -> Callable[[Path], object]:
    """Issues, shows and revokes with an authority of which one file is another."""

    def read(path: Path) -> object:
        folder = path.parent / "authority"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        AUTHORITY.write(folder)
        AUTHORITY.revoke(folder, [7])
        shutil.copy(path, folder / changed)
        authority = Authority.read(folder)
        authority.issue("north")
        authority.revoke(folder, [9])
        return show(folder)

    return read


def _party(path: Path) -> object:
    (path.parent / "federation.toml").write_text(federation_toml([7101, 7102, 7103]))
    NodeFile.load(path)
    return PartyConfig.load(path)


def _of_release(name: str) -> Reader:
    def read(path: Path) -> object:
        place = path.parent / "read-release"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(path.parent / "release", place)
        shutil.copy(path, place / name)
        return verify_folder(place)

    return Reader(lambda folder: [(release_folder(folder) / name).read_bytes()], read)


def _anonymize(path: Path) -> object:
    (path.parent / "people.csv").write_bytes(people_csv(path.parent)[0])
    return load_anonymization(path)


def table_in(form: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        with contextlib.suppress(ComineError):
            guess_format(str(path), "table")
        return load_table(path, form)

    return read


def transactions_in(form: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        with contextlib.suppress(ComineError):
            guess_format(str(path))
        return load_transactions(path, form)

    return read


def _copied(form: str, options: SourceOptions) -> Callable[[Path], object]:
    """Reads a file twice, one after the other, and in another encoding."""

    def read(path: Path) -> object:
        twice = path.parent / "twice"
        twice.mkdir(exist_ok=True)
        for name in ("a", "b"):
            shutil.copy(path, twice / f"{name}.{form}")
        return load_table(str(twice / f"*.{form}"), form, options=options)

    return read


def _workbook(path: Path) -> object:
    book = path.with_suffix(".xlsx")
    shutil.copy(path, book)
    with contextlib.suppress(ComineError):
        guess_format(str(book))
    return load_transactions(book, "long")


def _sql(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        url, query = f"{kind}:///{path}", "select id, item from rows"
        with contextlib.suppress(ComineError):
            load_table(url, "sql", query=query)
        return load_transactions(url, "sql", query=query)

    return read


def _catalogue(path: Path) -> object:
    job = path.with_name("with-catalogue.toml")
    job.write_text(JOB.replace("max_length = 4", f'max_length = 4\nuniverse = "{path.name}"'))
    return load_job(job)


def _labels(path: Path) -> object:
    collection = path.with_name("with-labels.toml")
    collection.write_text(COLLECTION.replace("size = 16", f'domain = "{path.name}"'))
    return CollectionSpec.load(collection)


def _completed(path: Path) -> object:
    return parties_of_job(SimpleNamespace(args=[str(path)], params={}), "n")  # type: ignore[arg-type]


def _of_node(path: Path) -> object:
    """Rows as a node sends them."""
    draft = path.parent / "from-node"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    shutil.copy(path, draft / ROWS_OF_A_NODE)

    async def complete() -> None:
        node = ReleasingNode(AUTHORITY.issue("hub", "coordinator"), "north", "127.0.0.1:1")
        try:
            node.complete(draft)
        finally:
            await node.close()

    asyncio.run(complete())
    return None


def _csv_blocks(path: Path) -> object:
    return [block.num_rows for block in CsvBlocks(path, ",").blocks(["zip", "age"])]


def _parquet_blocks(path: Path) -> object:
    found = ParquetBlocks(path)
    return [block.num_rows for block in found.blocks(found.column_names[1:])]


def _named(path: Path) -> object:
    return unpack_named("north", path.read_bytes(), SimpleNamespace(threshold=1), None)  # type: ignore[arg-type]


def _bytes(read: Callable[[bytes], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes())


def _accounts(path: Path) -> object:
    return Accounts(path).people()


def _people(path: Path) -> Subscriptions:
    return Subscriptions(path, Accounts(path.with_name("console.json")))


def _subscriptions(folder: Path) -> list[bytes]:
    path = folder / "push.json"
    key = written(point_of(_people(path).key()))
    _people(path).add("anna", "https://fcm.googleapis.com/wp/1", key, written(bytes(16)))
    return [path.read_bytes()]


def _console_secret(path: Path) -> object:
    settings = {"issuer": "https://login.example", "client_id": "comine", "roles": {"all": "viewer"}}
    return client_secret(OidcSection.model_validate({**settings, "client_secret_file": path}))


SHOWN = AUTHORITY.issue("north")

READERS: dict[str, Reader] = {
    "job": Reader(texts(JOB, PRIVATE, MODEL), load_job, "job.toml"),
    "composed-job": Reader(texts(JOB, PRIVATE, MODEL), lambda path: read_job(path.read_text(errors="replace"))),
    "federation": Reader(texts(federation_toml([7101, 7102, 7103])), Federation.load, "federation.toml"),
    "relay": Reader(texts(relay_toml(8443, "idle = 60")), RelayConfig.load, "relay.toml"),
    "relay-authority": Reader(
        certificate_pems, lambda path: FederationSection(name="retail", ca=path).trust(), pem=True
    ),
    "party": Reader(texts(party_toml("north", policy="max_jobs = 5")), _party, "party.toml"),
    "collection": Reader(texts(COLLECTION), CollectionSpec.load, "collection.toml"),
    "anonymize": Reader(texts(ANONYMIZE), _anonymize, "anonymize.toml"),
    "certificate": Reader(certificate_pems, _identity("north.crt"), pem=True),
    "authority": Reader(certificate_pems, _identity("ca.crt"), pem=True),
    "key": Reader(key_pems, _identity("north.key"), pem=True),
    "shown-certificate": Reader(lambda folder: [SHOWN.certificate_pem], _shown, pem=True),
    "pki-certificate": Reader(certificate_pems, _pki("ca.crt"), pem=True),
    "pki-key": Reader(key_pems, _pki("ca.key"), pem=True),
    "pki-list": Reader(revocation_lists, _pki("ca.crl"), pem=True),
    "request": Reader(signing_requests, _signed, pem=True),
    "key-of-request": Reader(key_pems, lambda path: make_request(path.read_bytes(), "north", "party", []), pem=True),
    "list": Reader(
        revocation_lists, lambda path: Trust.load(AUTHORITY.certificate_pem, Path("ca.crt"), path), pem=True
    ),
    "basket": Reader(texts("bread milk\nmilk\n\nbeer bread\n"), transactions_in("basket")),
    "long": Reader(texts("id,item\n1,bread\n1,milk\n2,bread\n"), transactions_in("long")),
    "wide": Reader(texts("bread,milk\n1,0\n1,1\n"), transactions_in("wide")),
    "csv-items": Reader(texts('bread,"mi,lk"\nmilk\n'), transactions_in("csv")),
    "parquet-items": Reader(baskets_parquet_file, transactions_in("parquet")),
    "table": Reader(people_csv, table_in("csv")),
    "parquet-table": Reader(people_parquet, table_in("parquet")),
    "block-csv": Reader(people_csv, _csv_blocks),
    "block-parquet": Reader(people_parquet, _parquet_blocks),
    "sorted-run": Reader(sorted_runs, lambda path: list(merged([path]))),
    "copied-csv": Reader(people_csv, _copied("csv", SourceOptions(encoding="latin-1"))),
    "copied-parquet": Reader(people_parquet, _copied("parquet", PLAIN)),
    "workbook": Reader(
        lambda _folder: [(Path(__file__).parents[1] / "mining/data/sales.xlsx").read_bytes()], _workbook
    ),
    "sqlite": Reader(sqlite_file, _sql("sqlite")),
    "duckdb": Reader(duckdb_file, _sql("duckdb")),
    "verified-csv": Reader(people_csv, read_csv),
    "verified-parquet": Reader(people_parquet, read_parquet),
    "hierarchy": Reader(texts("10115;1011*;101**;*\n10116;1011*;101**;*\n"), lambda path: from_csv(path, ";")),
    "hierarchy-json": Reader(texts('{"*": {"a": ["b", "c"], "d": ["e"]}}'), from_json, "zip.json"),
    "rules": Reader(texts("bread, milk -> beer\n# no\na -> b\n"), read_rules),
    "values": Reader(texts("milk\nbread\nmilk\n"), load_collection),
    "shuffle-state": Reader(texts('{"counted": [1, 2]}'), read_state),
    "release-certificate": _of_release("certificate.json"),
    "release-csv": _of_release("release.csv"),
    "release-parquet": _of_release("release.parquet"),
    "catalogue": Reader(texts("bread\nmilk\n"), _catalogue, "items.txt"),
    "labels": Reader(texts("a\nb\nc\n"), _labels, "labels.txt"),
    "route": Reader(texts('[route]\nname = "weekly"\nshufflers = ["north"]\nsize = 4\n'), RouteSpec.load, "r.toml"),
    "completion": Reader(texts(JOB), _completed),
    "audited-party": Reader(texts(party_toml("north")), audited, "party.toml"),
    "console-accounts": Reader(texts('{"anna": {"role": "viewer", "password": "$argon2id$v=19$"}}'), _accounts),
    "console-push": Reader(_subscriptions, lambda path: _people(path).all()),
    "console-password": Reader(texts("correct horse battery\n"), read_password),
    "console-settings": Reader(texts('[console]\nlisten = "127.0.0.1:8470"\n'), ConsoleFile.load, "console.toml"),
    "console-secret": Reader(texts("correct horse battery\n"), _console_secret),
    "release-labels": _of_release("labels.json"),
    "release-manifest": _of_release("manifest.json"),
    "rows-of-a-node": Reader(arrow_streams, _of_node),
    # What was kept or sent, as bytes.
    "mechanism": Reader(mechanism_documents, _bytes(mechanism_of)),
    "ledger": Reader(ledgers, _bytes(WindowLedger.from_bytes)),
    "stream": Reader(lambda folder: [stream_method(name, 4, 1.0, 3).to_bytes() for name in METHODS], _bytes(restored)),
    "sliding-memo": Reader(sliding_memos, _bytes(lambda data: SlidingMemo.from_bytes(data, MEMOISED))),
    "schedule": Reader(texts('{"next":3}'), _bytes(read_schedule)),
    "stream-release": Reader(
        lambda folder: [packed_release(Release(1, np.ones(4), np.ones(4), 1, 5))], _bytes(release_of)
    ),
    "budget": Reader(lambda folder: [Budget(8).to_bytes()], _bytes(Budget.from_bytes)),
    "remembered": Reader(lambda folder: [weekly().canonical()], _bytes(remembered)),
    "named": Reader(texts('[["a",5],["b",7]]'), _named),
    "names": Reader(texts('["a","b"]'), _bytes(lambda data: unpack_names("north", data))),
    "evidence": Reader(
        lambda folder: [file_of("two dealings").encode()],
        lambda path: read_evidence(path).judged(TRUST),
        allowed=(ValueError,),
    ),
    "step": Reader(kept_steps, _bytes(Step.unpack), allowed=(ValueError,)),
    # What others sent, packed: their callers translate a ValueError.
    "state": Reader(
        aggregator_states, lambda path: Aggregator.from_bytes(path.read_bytes(), oracle("grr", Domain(4), 1.0))
    ),
    "json": Reader(texts('{"a": ["\\u00e9"]}'), lambda path: read_json(path.read_bytes()), allowed=(ValueError,)),
}
