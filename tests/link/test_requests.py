"""Requests for certificates: nothing that one asks for, beside name, role, hosts and key, reaches a certificate."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from link.pki.authority import Authority, new_key, write_identity
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.pki.issued import revoke, show
from link.pki.requests import MAX_HOSTS, make_request, read_request
from link.pki.signing import judge, sign
from tests.errors import fails

NORTH = x509.UniformResourceIdentifier("comine://party/north")
Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Authority.create().write(tmp_path / "pki")
    return tmp_path / "pki"


def hostile(
    path: Path,
    *names: x509.GeneralName,
    key: Key | None = None,
    more: Sequence[x509.ExtensionType] = (),
    common: str = "north",
) -> Path:
    """A request as other tools may make it."""
    signer = key or ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    )
    for extension in (*([x509.SubjectAlternativeName(names)] if names else []), *more):
        builder = builder.add_extension(extension, critical=True)
    made = builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return path


def asked(path: Path, name: str = "north", key_pem: bytes | None = None, hosts: Sequence[str] = ()) -> Path:
    path.write_bytes(make_request(key_pem or new_key(), name, "party", hosts))
    return path


def test_a_signed_request_is_an_identity(folder: Path, tmp_path: Path) -> None:
    key = new_key()
    request = read_request(asked(tmp_path / "north.csr", key_pem=key, hosts=["node.example", "10.0.0.1", "north"]))
    assert (request.name, request.role, request.hosts) == ("north", "party", ("node.example", "10.0.0.1"))
    certificate = sign(folder, judge(folder, request, ["north", "south"]))
    assert {path.name for path in folder.iterdir()} == {"ca.crt", "ca.key", "north.crt"}
    (tmp_path / "north.key").write_bytes(key)
    (tmp_path / "north.key").chmod(0o600)
    loaded = Identity.load(folder / "ca.crt", certificate, tmp_path / "north.key")
    assert (loaded.role, loaded.name) == ("party", "north")
    issued = read_certificate(Authority.read(folder).issue("north", "party", request.hosts).certificate_pem)
    signed = read_certificate(certificate.read_bytes())
    others = (x509.SubjectKeyIdentifier,)
    assert signed.subject == issued.subject
    assert [each for each in signed.extensions if not isinstance(each.value, others)] == [
        each for each in issued.extensions if not isinstance(each.value, others)
    ]


def test_whoever_the_subject_names_the_holder_is_the_one_of_the_uri(folder: Path, tmp_path: Path) -> None:
    request = read_request(hostile(tmp_path / "csr", NORTH, common="south"))
    certificate = read_certificate(sign(folder, judge(folder, request, None)).read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=north"


@pytest.mark.parametrize(
    "more",
    [
        x509.BasicConstraints(ca=True, path_length=3),
        x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CODE_SIGNING]),
        x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),
    ],
)
def test_no_other_extension_is_asked_for(tmp_path: Path, more: x509.ExtensionType) -> None:
    with fails("E201"):
        read_request(hostile(tmp_path / "csr", NORTH, more=[more]))


@pytest.mark.parametrize(
    "names",
    [
        [],
        [NORTH, x509.UniformResourceIdentifier("comine://coordinator/north")],
        [NORTH, x509.UniformResourceIdentifier("https://example")],
        [NORTH, x509.RFC822Name("north@example")],
        [NORTH, x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "south")]))],
        [NORTH, *(x509.IPAddress(ipaddress.ip_address(at)) for at in range(MAX_HOSTS + 1))],
        [x509.UniformResourceIdentifier("comine://authority/north")],
    ],
)
def test_names_that_no_member_has_are_refused(tmp_path: Path, names: list[x509.GeneralName]) -> None:
    with fails("E201"):
        read_request(hostile(tmp_path / "csr", *names))


@pytest.mark.parametrize(
    "names",
    [
        [NORTH, x509.DNSName("*.example")],
        [NORTH, x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))],
        [x509.UniformResourceIdentifier("comine://party/ca")],
        [x509.UniformResourceIdentifier("comine://coordinator/hub"), x509.DNSName("north")],
    ],
)
def test_hosts_and_names_that_cannot_be_are_refused(tmp_path: Path, names: list[x509.GeneralName]) -> None:
    with fails("E100"):
        read_request(hostile(tmp_path / "csr", *names))


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 1024),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
        ec.generate_private_key(ec.SECP192R1()),
        ec.generate_private_key(ec.SECP384R1()),
    ],
)
def test_other_keys_are_refused(tmp_path: Path, key: Key) -> None:
    with fails("E201"):
        read_request(hostile(tmp_path / "csr", NORTH, key=key))


def test_a_request_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = asked(tmp_path / "north.csr")
    der = x509.load_pem_x509_csr(path.read_bytes()).public_bytes(serialization.Encoding.DER)
    changed = x509.load_der_x509_csr(der.replace(b"party/north", b"party/south"))
    path.write_bytes(changed.public_bytes(serialization.Encoding.PEM))
    with fails("E201"):
        read_request(path)


def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.csr").write_bytes(new_key())
    with fails("E100"):
        read_request(tmp_path / "no.csr")


def test_strangers_and_wrong_roles_are_refused(folder: Path, tmp_path: Path) -> None:
    request = read_request(asked(tmp_path / "north.csr"))
    with fails("E100"):
        judge(folder, request, ["south", "east"])
    hub = hostile(tmp_path / "hub.csr", x509.UniformResourceIdentifier("comine://coordinator/north"))
    with fails("E100"):
        judge(folder, read_request(hub), ["north", "south"])
    sign(folder, judge(folder, request, None))
    with fails("E100"):
        judge(folder, read_request(hub), None)


def test_nobody_asks_with_the_key_of_another(folder: Path, tmp_path: Path) -> None:
    key = new_key()
    sign(folder, judge(folder, read_request(asked(tmp_path / "north.csr", key_pem=key)), None))
    with fails("E201"):
        judge(folder, read_request(asked(tmp_path / "south.csr", "south", key)), None)


def test_nobody_asks_for_the_host_name_of_another(folder: Path, tmp_path: Path) -> None:
    write_identity(Authority.read(folder).issue("south"), folder)
    with fails("E100"):
        judge(folder, read_request(asked(tmp_path / "north.csr", hosts=["south"])), None)


def test_renewal_keeps_the_key_and_another_key_needs_force(folder: Path, tmp_path: Path) -> None:
    key = new_key()
    request = asked(tmp_path / "north.csr", key_pem=key)
    for again in (False, True):
        judged = judge(folder, read_request(request), None)
        assert judged.same_key is again
        sign(folder, judged)
    other = judge(folder, read_request(asked(tmp_path / "new.csr")), None)
    assert (other.before is not None, other.same_key) == (True, False)
    with fails("E100"):
        sign(folder, other)
    sign(folder, other, force=True)
    assert [(issued.name, issued.current) for issued in show(folder)[1:]] == [
        ("north", True),
        ("north", False),
        ("north", False),
    ]


def test_a_revoked_key_is_not_signed_again_and_another_is(folder: Path, tmp_path: Path) -> None:
    request = asked(tmp_path / "north.csr")
    sign(folder, judge(folder, read_request(request), None))
    revoke(folder, "north")
    with fails("E201"):
        judge(folder, read_request(request), None)
    sign(folder, judge(folder, read_request(asked(tmp_path / "new.csr")), None))
