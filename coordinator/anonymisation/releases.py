"""The coordinator's end of releases: a configuration becomes a request, and what arrives a folder that was verified."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.certifying import write_csv
from anonymize.hierarchies.files import rows_of
from anonymize.verifier import CERTIFICATE, RELEASE_CSV, RELEASE_PARQUET, verify
from coordinator.node_client import REACH_S, NodeClient
from jobs.anonymization.folder import REPORT, holds_earlier
from jobs.anonymization.hierarchy_spec import FileEntry
from jobs.anonymization.inputs import from_file
from jobs.anonymization.spec import OF_SOURCE, AnonymizeSection, parameters
from jobs.results.destination import beside, writing
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from link.errors import ConfigurationError, LimitExceeded
from link.files.json_text import read_json
from link.pki.identity import Identity
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub

MAX_REQUEST_BYTES: Final = 6 << 20  # below what a node takes in one message
MAX_RELEASE_BYTES: Final = 4 << 30  # of all files
ROWS: Final = "rows.arrow"  # until release.csv is made of it

FILES: Final[Mapping[int, str]] = {
    pb.ROWS: ROWS,
    pb.PARQUET: RELEASE_PARQUET,
    pb.CERTIFICATE: CERTIFICATE,
    pb.REPORT: REPORT,
}
# Before the page of another machine, so that nothing in it runs, is loaded or sent when a browser opens it.
_HARMLESS: Final = (
    b'<!doctype html>\n<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    b"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
)
_OF_THE_NODE: Final = OF_SOURCE | {"identifiers", "allow_repeated", "allow_unique", "engine"}
_NEEDED: Final = frozenset({ROWS, RELEASE_PARQUET, CERTIFICATE})


def request_of(spec: AnonymizeSection, folder: Path, dataset: str | None = None) -> pb.AnonymizeRequest:
    """A configuration as a request to a node: hierarchies that it has in files are sent by their rows.

    Args:
        spec: The configuration. What it says of its source is not sent, nor are identifiers, which stay anyhow.
        folder: Of the configuration; hierarchies are beside it.
        dataset: The node's dataset; by default what `source` names.

    Raises:
        ConfigurationError: It holds a seed, or is too large.
        InputDataError: A hierarchy cannot be read.
    """
    if spec.seed is not None:
        raise ConfigurationError(
            "a node lets nobody choose the draws, since who knows the seed can undo them; take seed out of [anonymize]"
        )
    if dataset is None and spec.is_database:
        raise ConfigurationError("[anonymize] source is the URL of a database; name the node's dataset with --dataset")
    files = {name: entry for name, entry in spec.hierarchies.items() if isinstance(entry, FileEntry)}
    rest = {name: entry for name, entry in spec.hierarchies.items() if name not in files}
    sent = spec.model_copy(update={"hierarchies": rest}).model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude={*_OF_THE_NODE, *(() if rest else ("hierarchies",))},
    )
    request = pb.AnonymizeRequest(
        dataset=spec.source if dataset is None else dataset,
        configuration=json.dumps(sent, ensure_ascii=False),
        hierarchies={
            name: _as_csv(folder / entry.file, entry, entry.separator or spec.separator, name)
            for name, entry in files.items()
        },
    )
    if request.ByteSize() > MAX_REQUEST_BYTES:
        raise ConfigurationError(
            f"the configuration and its hierarchies take more than {MAX_REQUEST_BYTES >> 20} MiB; have the hierarchies "
            "written into [dataset.anonymization.hierarchies] of the node"
        )
    return request


def _as_csv(path: Path, entry: FileEntry, separator: str, name: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows_of(from_file(path, entry, separator, name)))
    return text.getvalue()


class ReleasingNode(NodeClient):
    """Asks the anonymisation service of one node for releases.

    Args:
        identity: The coordinator.
        party: Whose node it must prove to be.
        address: HOST:PORT.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        super().__init__(identity, party, address)
        self._identity = identity
        self._service: Any = AnonymizationStub(self.channel)

    async def datasets(self) -> list[pb.OpenDataset]:
        """The datasets of which the coordinator may ask for releases.

        Raises:
            MalformedMessage: What they ask of releases cannot be read.
        """
        found = await self.call(self._service.ListDatasets(pb.ListDatasetsRequest(), timeout=REACH_S))
        open_ones = [each for each in found.datasets if each.HasField("anonymization")]
        try:
            for each in open_ones:
                read_json(each.anonymization.require)
                read_json(each.anonymization.levels or "null")
        except (ValueError, RecursionError):
            raise self.malformed("rules of a dataset that are no JSON") from None
        return open_ones

    async def fetch(self, request: pb.AnonymizeRequest, out: Path) -> Certificate:
        """Writes the folder of a release, whole or not at all; an earlier release in its place is replaced.

        It is written only after the independent verifier has found what its certificate claims, and the certificate
        claims what was asked. The coordinator signs the manifest of what came.

        Raises:
            PolicyDenied: The node's policy does not let such a release leave.
            MalformedMessage: What arrives is no such release.
            LimitExceeded: It is more than a release can hold.
            ConfigurationError: `out` is a file, or holds something other than an earlier release; or the node can
                make no such release.
            ResourceError: The disk is full, or the folder cannot be written.
        """
        draft = _draft(out)
        try:
            await self._receive(request, draft)
            self.complete(draft)
            certificate = self._checked(draft, request)
            writing(draft, lambda: seal(draft, self._identity))
            write_whole(out, lambda whole: os.rename(draft, whole), holds_earlier)
            return certificate
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    async def _receive(self, request: pb.AnonymizeRequest, draft: Path) -> None:
        size, last, seen = 0, 0, set()
        async with aclosing(self.parts(self._service.Anonymize(request))) as parts:  # the node bounds its time
            async for part in parts:
                if part.file not in FILES or part.file < last:
                    raise self.malformed("files in an order of its own")
                last, name, data = part.file, FILES[part.file], part.data
                size += len(data)
                if size > MAX_RELEASE_BYTES:
                    raise LimitExceeded(f"{self.party} sent a release of more than 4 GiB", party=self.party)
                if name == REPORT and REPORT not in seen:
                    data = _HARMLESS + data
                writing(draft, lambda name=name, data=data: _append(draft / name, data))  # type: ignore[misc]
                seen.add(name)
        if not seen >= _NEEDED:
            raise self.malformed("a release that lacks a file")

    def complete(self, draft: Path) -> None:
        """Makes `release.csv` of the rows that came."""
        try:
            with pa.OSFile(str(draft / ROWS), "rb") as source, pa.ipc.open_stream(source) as stream:
                rows = stream.read_all()
                rows.validate(full=True)  # Arrow believes lengths and offsets in a stream, and reads beyond its memory
                _ = rows.column_names
        except (pa.ArrowException, UnicodeDecodeError, OSError):  # the last of a stream that was cut off
            raise self.malformed("rows that are no Arrow stream") from None
        if any(pa.types.is_nested(each) for each in rows.schema.types):
            raise self.malformed("rows that are no table of single cells")
        try:
            writing(draft, lambda: write_csv(draft / RELEASE_CSV, rows))
        except (pa.ArrowException, ValueError, OverflowError):
            raise self.malformed("cells that cannot be written as text") from None
        (draft / ROWS).unlink()

    def _checked(self, draft: Path, request: pb.AnonymizeRequest) -> Certificate:
        found = verify(draft)
        if not found.ok:
            first = found.failures[0]
            raise self.malformed(
                f"a release that does not hold what its certificate claims: {first.check} (claimed: "
                f"{first.expected[:100]}; found: {first.found[:100]})"
            )
        certificate = Certificate.read(draft / CERTIFICATE)
        asked = AnonymizeSection.model_validate({"source": request.dataset, **read_json(request.configuration)})
        columns = {*asked.quasi_identifiers, *asked.sensitive, *asked.insensitive}
        given = {name for name, column in certificate.columns.items() if not column.added}
        claims = certificate.model
        same = (
            claims.k == asked.model.k or asked.algorithm == "ppir",
            {key: len(claimed) for key, claimed in claims.lists.items()}
            == {key: len(asked.model.entries.get(key, "1")) for key in asked.model.beside_k},  # of H there is one
            given <= columns,
            {key: sent for key, sent in certificate.parameters.items() if key not in _OF_THE_NODE} == parameters(asked),
        )
        if not all(same):
            raise self.malformed("a release other than the one that was asked for")
        return certificate


def _draft(out: Path) -> Path:
    """A new folder beside a result folder, in which its parts are put together."""
    target = out.resolve()
    draft = beside(target, "parts")
    writing(target, lambda: draft.mkdir(parents=True))
    return draft


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


HEADS: Final = ("dataset", "column", "may leave as", "kind", "hierarchy")


def listing(datasets: list[pb.OpenDataset]) -> list[tuple[str, ...]]:
    """The columns that may leave, a line for each."""
    return [
        (each.name, column.name, ", ".join(column.roles), column.kind, "yes" if column.hierarchy else "")
        for each in datasets
        for column in each.anonymization.columns
    ]


def rules_of(dataset: pb.OpenDataset) -> str:
    """What else a node asks of releases of a dataset, in a sentence."""
    rules = dataset.anonymization
    require = read_json(rules.require)
    models = f"; beside it {', '.join(rules.models)}" if rules.models else ""
    least = f"; at least {json.dumps(require)}" if require else ""
    return (
        f"{dataset.name}: k of at least {rules.min_k}{models}{least}; algorithms {', '.join(rules.algorithms)}; "
        f"max_suppression up to {rules.max_suppression}; {rules.max_releases} different releases in all"
    )


def listing_as_data(node: str, datasets: list[pb.OpenDataset]) -> dict[str, Any]:
    """What may be asked for as JSON, `comine.releasable/1`."""
    return {
        "schema": "comine.releasable/1",
        "node": node,
        "datasets": [
            {
                "name": each.name,
                "columns": {
                    column.name: {
                        "roles": list(column.roles),
                        "kind": column.kind or None,
                        "hierarchy": column.hierarchy,
                    }
                    for column in each.anonymization.columns
                },
                "min_k": each.anonymization.min_k,
                "algorithms": list(each.anonymization.algorithms),
                "models": list(each.anonymization.models),
                "require": read_json(each.anonymization.require),
                "max_suppression": each.anonymization.max_suppression,
                "suppressed": list(each.anonymization.suppressed),
                "levels": read_json(each.anonymization.levels or "null"),
                "describe": each.anonymization.describe,
                "report": each.anonymization.report,
                "max_releases": each.anonymization.max_releases,
            }
            for each in datasets
        ],
    }
