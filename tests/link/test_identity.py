"""Certificates: names, files, and what is refused."""

from __future__ import annotations

import datetime as dt
import ssl
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import example, given
from hypothesis import strategies as st

from link.errors import ConfigurationError, IdentityError, ResourceError
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity, check_name, check_own_span, check_span, name_in, peer_of, verify
from link.pki.issued import show
from tests.errors import fails

AUTHORITY = Authority.create()


@pytest.fixture
def pki(tmp_path):
    folder = tmp_path / "pki"
    authority = Authority.create()
    authority.write(folder)
    write_identity(authority.issue("north", hosts=["10.1.2.3", "node.example"]), folder)
    return folder


def _load(folder, name="north"):
    return Identity.load(folder / "ca.crt", folder / f"{name}.crt", folder / f"{name}.key")


def _replace(folder, name, identity):
    (folder / f"{name}.crt").write_bytes(identity.certificate_pem)
    (folder / f"{name}.key").write_bytes(identity.key_pem)


def test_an_identity_survives_its_files(pki):
    identity = _load(pki)
    assert (identity.name, identity.role) == ("north", "party")
    verify(identity.trust, identity.certificate_pem, "north", b"data", identity.sign(b"data"))
    assert b"PRIVATE" in identity.key_pem
    assert "PRIVATE" not in repr(identity)
    assert "PRIVATE" not in repr(Authority.read(pki))


def test_keys_are_private_from_the_first_byte_on(pki):
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in pki.iterdir()} == {
        "ca.crt": 0o644,
        "ca.key": 0o600,
        "north.crt": 0o644,
        "north.key": 0o600,
    }


def test_nothing_is_overwritten_unasked(pki):
    authority = Authority.read(pki)
    before = (pki / "north.key").read_bytes()
    with fails("E100"):
        write_identity(authority.issue("north"), pki)
    with fails("E100"):
        Authority.create().write(pki)
    assert (pki / "north.key").read_bytes() == before
    write_identity(authority.issue("north"), pki, force=True)
    assert (pki / "north.key").read_bytes() != before
    _load(pki)


def test_show(pki):
    write_identity(Authority.read(pki).issue("boss", "coordinator"), pki)
    authority, boss, north = show(pki)
    assert (authority.role, boss.role, north.role) == ("authority", "coordinator", "party")
    assert north.hosts == ("node.example", "10.1.2.3")
    assert boss.hosts == ()
    assert len(bytes.fromhex(north.fingerprint)) == 32


def test_show_says_what_is_wrong(tmp_path, pki):
    with fails("E100"):
        show(tmp_path)
    (pki / "x.crt").write_text("nothing")
    with fails("E100"):
        show(pki)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError):
        AUTHORITY.write(tmp_path / "file" / "pki")


@pytest.mark.parametrize("missing", ["ca.crt", "north.crt", "north.key"])
def test_a_missing_file_is_named(pki, missing):
    (pki / missing).unlink()
    with fails("E100") as error:
        _load(pki)
    assert missing in error.value.message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_open_is_refused(pki, mode):
    (pki / "north.key").chmod(mode)
    with fails("E100"):
        _load(pki)


def _foreign(authority):
    return Authority.create().issue("north")


def _outdated(authority):
    return authority.issue("north", valid_days=-2)


@pytest.mark.parametrize("made", [_foreign, _outdated])
def test_a_certificate_that_does_not_hold(pki, made):
    _replace(pki, "north", made(Authority.read(pki)))
    with fails("E201") as error:
        _load(pki)
    assert error.value.exit_code == 20
    assert "north.crt" in error.value.message


def test_a_key_of_another_certificate(pki):
    (pki / "north.key").write_bytes(Authority.read(pki).issue("north").key_pem)
    with fails("E201"):
        _load(pki)


@pytest.mark.parametrize("file", ["ca.crt", "north.crt", "north.key"])
def test_files_that_hold_something_else(pki, file):
    (pki / file).write_text("nothing")
    with fails("E201") as error:
        _load(pki)
    assert file in error.value.message


def test_a_certificate_without_a_name(pki):
    """The authority's own certificate names no party."""
    for suffix in ("crt", "key"):
        (pki / f"north.{suffix}").write_bytes((pki / f"ca.{suffix}").read_bytes())
    with fails("E201"):
        _load(pki)


@pytest.mark.parametrize(
    "name",
    ["", "North", "a" * 64, "-a", "a-", ".a", "a.", "..", "a/b", "a b", "ca", "127.0.0.1", "ä", "a\n", "1.1.1.1"],
)
def test_what_cannot_be_a_name(name):
    with pytest.raises(ConfigurationError):
        check_name(name)
    with pytest.raises(ConfigurationError):
        AUTHORITY.issue(name)


@given(st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?", fullmatch=True))
def test_names_survive_certificates(name):
    try:
        check_name(name)
    except ConfigurationError:
        return
    assert name_in([name, f"comine://party/{name}"]) == ("party", name)


@pytest.mark.parametrize("host", ["", "a b", "http://x", "x:7101", "*.example", "x/y", "a" * 254])
def test_what_cannot_be_a_host(host):
    with pytest.raises(ConfigurationError):
        AUTHORITY.issue("north", hosts=[host])


def test_a_coordinator_cannot_answer_in_a_partys_place():
    with pytest.raises(ConfigurationError):
        AUTHORITY.issue("boss", "coordinator", hosts=["example"])
    certificate = x509.load_pem_x509_certificate(AUTHORITY.issue("boss", "coordinator").certificate_pem)
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == []


def _call(*names, told=()):
    """What gRPC tells of a caller whose certificate has these names; `told` are those that it tells beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject, now = x509.Name([]), dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + dt.timedelta(days=1))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    return {"x509_subject_alternative_name": list(told), "x509_pem_cert": [pem]}


URI = x509.UniformResourceIdentifier


@pytest.mark.parametrize(
    "names",
    [
        [],
        [URI("north")],
        [URI("comine://party/north"), URI("comine://party/south")],
        [URI("comine://party/north"), URI("comine://party/north")],
        [URI("comine://king/north")],
        [URI("comine://party/")],
        [URI("comine://party/North")],
        [URI("comine://party")],
        [URI("comine://party/a/b")],
        [URI("comine://party/north\0")],
        [URI("comine://party/north\0.example")],
        [URI("\0comine://party/north")],
        [x509.DNSName("comine://party/north")],
        [x509.RFC822Name("comine://party/north")],
    ],
)
def test_callers_that_name_nobody(names):
    with pytest.raises(IdentityError):
        peer_of(_call(*names, told=[b"comine://party/north"]))  # as gRPC tells a name up to its first zero byte


def test_callers_that_name_themselves():
    names = [URI("north"), URI("comine://party/north"), x509.DNSName("comine://party/south")]
    assert peer_of(_call(*names)) == ("party", "north")
    for proof in ({}, {"x509_subject_alternative_name": [b"comine://party/north"]}, {"x509_pem_cert": [b"\xff"]}):
        with pytest.raises(IdentityError):
            peer_of(proof)


NORTH = AUTHORITY.issue("north")
DER = x509.load_pem_x509_certificate(NORTH.certificate_pem).public_bytes(Encoding.DER)
VERSION = DER.index(b"\xa0\x03\x02\x01\x02") + 4
SERIAL = VERSION + 3


@given(st.dictionaries(st.integers(0, len(DER) - 1), st.integers(0, 255), min_size=1, max_size=3))
@example({VERSION: 9})
@example({VERSION: 1})
@example({SERIAL: 0x80})  # which is negative
def test_whatever_stands_in_for_a_certificate_is_laid_at_its_holders_door(changes):
    der = bytearray(DER)
    for position, value in changes.items():
        der[position] = value
    if der == DER:
        return
    pem = ssl.DER_cert_to_PEM_cert(bytes(der)).encode()
    for check in (
        lambda: verify(NORTH.trust, pem, "north", b"data", NORTH.sign(b"data")),
        lambda: verify(NORTH.trust, pem, "north", b"data", NORTH.sign(b"data"), timed=False),
    ):
        with pytest.raises(IdentityError) as caught:
            check()
        assert caught.value.party == "north"


@pytest.mark.parametrize(("days", "lasts_s", "good"), [(1, 80_000, True), (1, 86_200, False), (1, 1e6, False)])
def test_a_certificate_must_outlive_the_work(days, lasts_s, good):
    pem = AUTHORITY.issue("north", valid_days=days).certificate_pem
    if good:
        check_span(pem, "north", lasts_s)
        return
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    with fails("E201", party="north") as caught:
        check_span(pem, "north", lasts_s)
    assert f"{until:%Y-%m-%d}" in caught.value.message


@pytest.mark.parametrize(("authority_days", "lasts_s", "good"), [(1, 80_000, True), (1, 86_200, False), (-1, 1, False)])
def test_the_authority_must_outlive_the_work_too(authority_days, lasts_s, good):
    """Its certificate ends first where a member's was issued in its last days."""
    identity = Authority.create(valid_days=authority_days).issue("north")
    check_span(identity.certificate_pem, "north", lasts_s)
    if good:
        check_own_span(identity, lasts_s)
        return
    with fails("E201", party="north") as caught:
        check_own_span(identity, lasts_s)
    assert caught.value.party == "north"


def test_a_clock_that_was_set_back_accuses_no_member(monkeypatch):
    class Earlier(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) - dt.timedelta(days=60)

    south = Authority.create().issue("south").certificate_pem
    monkeypatch.setattr(dt, "datetime", Earlier)
    with fails("E201") as refused:
        check_span(south, "south", 60.0)
    assert refused.value.party is None
