"""`manifest.json`: each file of a folder that comine wrote, with its SHA-256, signed by the writer of the folder.

Tables and `result.json` can be held against what the parties of a job have signed. The rest of a folder, such as its
report, follows from that in ways that no reader can repeat byte by byte; and of some folders no party signs anything.
The manifest covers every byte of all files, by the word of one member: the coordinator of a job, or the party whose
own copy it is.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from pydantic import Field, ValidationError

from jobs.documents.part import Part
from jobs.results.destination import MANIFEST
from link.errors import ComineError
from link.pki.identity import Identity, Role, verify
from link.pki.trust import Trust

_PURPOSE: Final = b"comine.manifest/1\0"
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256 (SEC 2, 2.4.2)
_NOT_ONE: Final = "it is not a manifest as comine writes it"


class Signer(Part):
    """Who wrote a folder."""

    role: Role
    name: str
    certificate: str = Field(description="In PEM form.")


class ManifestDocument(Part):
    """The whole of `manifest.json`."""

    schema_: Literal["comine.manifest/1"] = Field(alias="schema")
    time: str | None = Field(
        description="When the folder was written, UTC, by the signer's word; null where nobody signs."
    )
    files: dict[str, str] = Field(description="By path within the folder the SHA-256 of each file but this one.")
    signer: Signer | None = Field(description="Null where nobody signs, as of a simulation.")
    signature: str | None = Field(description="ECDSA with SHA-256 over the purpose and all the above, in base64.")


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a manifest shows of its folder.

    Attributes:
        problems: By path of a file what is wrong with it; empty where each byte is as it was signed.
        signer: Who has signed; None where nobody has, or the signature does not hold.
        time: When, by the signer's word; empty where nobody has signed.
        files: How many files are listed.
    """

    problems: tuple[tuple[Path, str], ...]
    signer: Signer | None = None
    time: str = ""
    files: int = 0


def seal(folder: Path, signer: Identity | None) -> None:
    """Writes the manifest of a folder whose other files are all there.

    Args:
        folder: The folder, as nobody else sees it yet.
        signer: Who writes it; None where that is nobody whom others know.

    Raises:
        OSError: A file cannot be read, or the manifest not be written.
    """
    document = ManifestDocument(
        schema="comine.manifest/1",
        time=None if signer is None else f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}",
        files={name: _sha256(path) for name, path in _walk(folder)},
        signer=None
        if signer is None
        else Signer(role=signer.role, name=signer.name, certificate=signer.certificate_pem.decode()),
        signature=None,
    )
    if signer is not None:
        signature = base64.b64encode(_lower(signer.sign(_signed(document)))).decode()
        document = document.model_copy(update={"signature": signature})
    (folder / MANIFEST).write_bytes(_written(document))


def check(folder: Path, trust: Trust | None) -> Sealed:
    """Compares a folder with its manifest, byte by byte.

    Args:
        folder: The folder.
        trust: Whom the reader trusts; None where only the bytes are compared, and not who vouches for them.
    """
    path = folder / MANIFEST
    if not os.path.lexists(path):
        return Sealed(
            (
                (
                    path,
                    "it is missing: the folder was written by a version of comine that wrote none, or it was removed; "
                    "only what parties signed was checked, so save the result again, or believe nothing else in it",
                ),
            )
        )
    try:
        document = _read(path)
    except OSError as error:
        return Sealed(((path, f"it cannot be read ({error.strerror})"),))
    except ValueError as error:
        return Sealed(((path, str(error)),))
    problems = tuple(_differences(folder, document.files))
    if trust is None:
        return Sealed(problems, None, "", len(document.files))
    if document.signer is None:
        unsigned = "nobody signed it, so anybody who changes a file can write it anew: it shows changes by mistake only"
        return Sealed(((path, unsigned), *problems), None, "", len(document.files))
    try:
        _check_signature(document, document.signer, trust)
    except (ComineError, ValueError) as error:
        return Sealed(((path, str(error)), *problems), None, "", len(document.files))
    return Sealed(problems, document.signer, document.time or "", len(document.files))


def _differences(folder: Path, listed: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    present = {}
    try:
        present = dict(_walk(folder))
    except OSError as error:
        yield folder, f"it cannot be read ({error.strerror})"
    for name in sorted(listed.keys() | present.keys()):
        path = present.get(name)
        if path is None:
            yield folder / name, f"it is missing, and {MANIFEST} lists it"
        elif name not in listed:
            yield path, f"{MANIFEST} does not list it: it was added, or renamed"
        elif path.is_symlink() or not path.is_file():
            yield path, "it is no plain file"
        else:
            try:
                same = _sha256(path) == listed[name]
            except OSError as error:
                yield path, f"it cannot be read ({error.strerror})"
                continue
            if not same:
                yield path, f"it was changed: its SHA-256 is not the one in {MANIFEST}"


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """By their paths within a folder all that lies in it but the manifest; folders only where they hold nothing."""
    pending = [(folder, "")]
    while pending:
        place, within = pending.pop()
        for entry in sorted(place.iterdir(), key=lambda path: path.name):
            name = f"{within}{entry.name}"
            if name == MANIFEST:
                continue
            if entry.is_dir() and not entry.is_symlink() and any(entry.iterdir()):
                pending.append((entry, f"{name}/"))
            else:
                yield name, entry


def _read(path: Path) -> ManifestDocument:
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is no plain file")
    contents = path.read_bytes()
    try:
        document = ManifestDocument.model_validate_json(contents)
    except ValidationError:
        raise ValueError(_NOT_ONE) from None
    if _written(document) != contents or (document.signer is None) is not (document.signature is None):
        raise ValueError(_NOT_ONE)
    return document


def _check_signature(document: ManifestDocument, signer: Signer, trust: Trust) -> None:
    try:
        signature = base64.b64decode(document.signature or "", validate=True)
        if base64.b64encode(signature).decode() != document.signature or _lower(signature) != signature:
            raise ValueError
        at = dt.datetime.strptime(document.time or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        raise ValueError(_NOT_ONE) from None
    verify(trust, signer.certificate.encode(), signer.name, _signed(document), signature, role=signer.role, at=at)


def _lower(signature: bytes) -> bytes:
    """Of the two signatures that anybody can make of either the one with the lower s, in its only encoding."""
    r, s = decode_dss_signature(signature)
    return encode_dss_signature(r, min(s, _ORDER - s))


def _signed(document: ManifestDocument) -> bytes:
    return _PURPOSE + _written(document.model_copy(update={"signature": None}))


def _written(document: ManifestDocument) -> bytes:
    return json.dumps(document.model_dump(mode="json", by_alias=True), indent=2).encode() + b"\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
