"""Of the files of a server's certificate, the one that is wrong is named, and no library speaks."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from link.pki.authority import Authority, write_identity
from link.pki.tls_files import load_pair
from tests.errors import fails


def _load(folder: Path) -> None:
    load_pair(
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), folder / "relay.crt", folder / "relay.key", "[relay]"
    )


@pytest.mark.parametrize(
    "wrong", ["no certificate", "no key", "certificate of text", "key of text", "locked key", "other key", "torn chain"]
)
def test_the_file_that_is_wrong_is_named(tmp_path: Path, wrong: str) -> None:
    authority = Authority.create()
    write_identity(authority.issue("relay"), tmp_path)
    _load(tmp_path)
    certificate, key = tmp_path / "relay.crt", tmp_path / "relay.key"
    match wrong:
        case "no certificate":
            certificate.unlink()
        case "no key":
            key.unlink()
        case "certificate of text":
            certificate.write_text("a certificate")
        case "key of text":
            key.write_text("a key")
        case "locked key":
            held = serialization.load_pem_private_key(key.read_bytes(), None)
            locked = serialization.BestAvailableEncryption(b"a password")
            form = serialization.PrivateFormat.PKCS8
            key.write_bytes(held.private_bytes(serialization.Encoding.PEM, form, locked))
        case "other key":
            key.write_bytes(authority.issue("relay").key_pem)
        case _:
            further = certificate.read_bytes()
            certificate.write_bytes(further + further[: len(further) // 2] + b"\n-----END CERTIFICATE-----\n")
    with fails("E100"):
        _load(tmp_path)
