"""Certificates that were taken back, and pins: what a member believes no longer."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import os
import shutil
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from link.executor import ThreadExecutor
from link.pki import revocation
from link.pki.authority import Authority, write_identity
from link.pki.identity import Identity, check_peer, verify
from link.pki.issued import is_revoked, revoke, show
from link.pki.revocation import RevocationList, dates_of, number_of, read_list, sign_list
from link.pki.trust import Trust, fingerprint
from link.session import Session
from link.transports.conformance.messages import Note
from tests.errors import fails
from tests.world import nodes, terms

AUTHORITY = Authority.create()
NORTH = AUTHORITY.issue("north")


@pytest.fixture
def pki(tmp_path):
    """The authority's folder."""
    folder = tmp_path / "pki"
    AUTHORITY.write(folder)
    write_identity(NORTH, folder)
    return folder


@pytest.fixture
def member(tmp_path, pki):
    """A member's copies of ca.crt and, once it is shipped, ca.crl."""
    folder = tmp_path / "member"
    folder.mkdir()
    shutil.copy(pki / "ca.crt", folder)
    write_identity(AUTHORITY.issue("south"), folder)
    return folder


def _ship(pki, member):
    """Puts the list into place as one should: all at once."""
    shutil.copy(pki / "ca.crl", member / "new")
    os.replace(member / "new", member / "ca.crl")


def _south(member, **options):
    return Identity.load(member / "ca.crt", member / "south.crt", member / "south.key", **options)


def _believes(trust, identity=NORTH, **options):
    signature = identity.sign(b"data")
    verify(trust, identity.certificate_pem, identity.name, b"data", signature, role=identity.role, **options)


def _certificate(identity):
    return x509.load_pem_x509_certificate(identity.certificate_pem)


def _call(identity):
    """What gRPC tells of a caller."""
    return {"x509_pem_cert": [identity.certificate_pem]}


# -- revoking ----------------------------------------------------------------------------------------------------------
def test_a_running_member_learns_of_a_revocation_without_a_restart(pki, member):
    trust = _south(member).trust
    _believes(trust)
    assert check_peer(trust, _call(NORTH)) == ("party", "north")
    assert trust.number == 0
    revoke(pki, "north")
    _believes(trust)  # nothing was shipped
    _ship(pki, member)
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    for believe in (lambda: _believes(trust), lambda: check_peer(trust, _call(NORTH))):
        with fails("E201", party="north") as refused:
            believe()
        assert today in refused.value.message
        assert refused.value.exit_code == 20
    assert trust.number == 1
    renewed = AUTHORITY.issue("north")
    _believes(trust, renewed)
    assert check_peer(trust, _call(renewed)) == ("party", "north")


def test_who_is_revoked_itself_does_not_start(pki, member):
    revoke(pki, "south", certificate=member / "south.crt")
    _ship(pki, member)
    with fails("E201", party="south"):
        _south(member)


def test_revoking_twice_changes_nothing(pki):
    first = revoke(pki, "north")
    before = (pki / "ca.crl").read_bytes()
    again = revoke(pki, "north")
    assert (pki / "ca.crl").read_bytes() == before
    assert ([c.name for c in first.revoked], first.before, first.number) == (["north"], (), 1)
    assert (again.revoked, [c.name for c in again.before], again.number) == ((), ["north"], 1)


def test_all_certificates_of_a_name_are_revoked_or_the_one_that_is_meant(pki):
    old = _certificate(NORTH)
    renewed = AUTHORITY.issue("north")
    write_identity(renewed, pki, force=True)
    current, replaced = (c for c in show(pki) if c.name == "north")
    assert (current.current, replaced.current) == (True, False)
    assert int(replaced.serial, 16) == old.serial_number

    one = revoke(pki, "north", serial=replaced.serial[:12].upper())
    assert [c.serial for c in one.revoked] == [replaced.serial]
    assert not is_revoked(pki, "north")
    both = revoke(pki, "north")
    assert [c.serial for c in both.revoked] == [current.serial]
    assert [c.serial for c in both.before] == [replaced.serial]
    assert is_revoked(pki, "north")
    assert all(c.revoked is not None for c in show(pki) if c.name == "north")
    assert not is_revoked(pki, "unheard")


def test_what_cannot_be_revoked(pki, tmp_path):
    for serial in ("12", "ffffffffffff"):
        with fails("E100"):
            revoke(pki, "north", serial=serial)
    with fails("E100"):
        revoke(pki, "south")
    with fails("E100"):
        revoke(pki, "south", certificate=pki / "north.crt")
    write_identity(Authority.create().issue("south"), tmp_path)
    with fails("E201"):
        revoke(pki, "south", certificate=tmp_path / "south.crt")
    with fails("E100"):
        revoke(pki, "south", certificate=tmp_path / "south.key")
    assert not (pki / "ca.crl").exists()


def test_a_new_authority_has_revoked_nothing(pki):
    revoke(pki, "north")
    Authority.create().write(pki, force=True)
    assert not (pki / "ca.crl").exists()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.integers(1, 2**159 - 1), max_size=4), min_size=1, max_size=5))
def test_lists_only_grow_and_keep_their_dates(steps):
    authority, key = AUTHORITY.signer()
    previous, revoked = None, {}
    for number, serials in enumerate(steps, 1):
        pem = sign_list(authority, key, serials, previous)
        previous = read_list(pem, AUTHORITY.certificate_pem, "ca.crl")
        assert number_of(previous) == number
        assert dates_of(previous).keys() == revoked.keys() | serials
        assert all(dates_of(previous)[serial] == date for serial, date in revoked.items())
        revoked = dates_of(previous)


# -- lists that do not hold --------------------------------------------------------------------------------------------
def _list_of(authority, folder, *serials):
    authority.revoke(folder, serials)
    return (folder / "ca.crl").read_bytes()


def _flipped(pem):
    der = bytearray(x509.load_pem_x509_crl(pem).public_bytes(revocation.serialization.Encoding.DER))
    der[-1] ^= 1
    crl = x509.load_der_x509_crl(bytes(der))
    return crl.public_bytes(revocation.serialization.Encoding.PEM)


def test_lists_that_are_refused(pki, member, tmp_path):
    (tmp_path / "other").mkdir()
    good = _list_of(AUTHORITY, pki, 7)
    foreign = _list_of(Authority.create(), tmp_path / "other", 7)
    for content in (foreign, _flipped(good), b"nothing", good[:80], b""):
        (member / "ca.crl").write_bytes(content)
        with fails("E201") as refused:
            _south(member)
        assert str(member / "ca.crl") in refused.value.message
    with fails("E201"):
        read_list(good, b"nothing", "x")
    (member / "ca.crl").write_bytes(good)
    _believes(_south(member).trust)


def test_while_the_list_is_wrong_nobody_is_believed(pki, member):
    _list_of(AUTHORITY, pki)
    _ship(pki, member)
    trust = _south(member).trust
    _believes(trust)
    good = (member / "ca.crl").read_bytes()
    for content in (b"torn", good[:100]):
        (member / "ca.crl").write_bytes(content)
        for _ in range(2):
            with fails("E201") as refused:
                _believes(trust)
            assert str(member) not in refused.value.message  # it may cross the wire
    (member / "ca.crl").unlink()
    with fails("E201"):
        _believes(trust)
    (member / "ca.crl").write_bytes(good)
    _believes(trust)


def test_an_older_list_does_not_bring_a_certificate_back(pki, member):
    old = _list_of(AUTHORITY, pki)
    revoke(pki, "north")
    _ship(pki, member)
    trust = _south(member).trust
    with fails("E201", party="north"):
        _believes(trust)
    (member / "ca.crl").write_bytes(old)
    with fails("E201"):
        _believes(trust)


def test_a_list_that_is_named_must_exist(pki, member):
    with fails("E100"):
        _south(member, crl=member / "revoked.crl")
    revoke(pki, "north")
    shutil.copy(pki / "ca.crl", member / "revoked.crl")
    with fails("E201", party="north"):
        _believes(_south(member, crl=member / "revoked.crl").trust)
    _believes(_south(member).trust)


def test_a_list_past_its_next_update_still_holds_and_is_warned_of(pki, member, monkeypatch):
    assert _south(member).trust.warning == ""
    monkeypatch.setattr(revocation, "LIST_DAYS", 0)
    revoke(pki, "north")
    _ship(pki, member)
    trust = _south(member).trust
    with fails("E201", party="north"):
        _believes(trust)
    assert "should have been renewed by" in trust.warning
    monkeypatch.setattr(revocation, "LIST_DAYS", 1)
    AUTHORITY.revoke(pki, ())
    _ship(pki, member)
    assert trust.warning == ""


def test_the_file_is_read_when_it_changes_and_only_then(pki, member, monkeypatch):
    _list_of(AUTHORITY, pki)
    _ship(pki, member)
    reads = []
    monkeypatch.setattr(revocation, "read_list", lambda *given: reads.append(1) or read_list(*given))
    found = RevocationList(member / "ca.crl", AUTHORITY.certificate_pem, required=True)
    for _ in range(3):
        assert found.revoked_on(7) is None
    assert len(reads) == 1
    _list_of(AUTHORITY, pki, 7)
    _ship(pki, member)
    assert found.revoked_on(7) is not None
    assert len(reads) == 2


# -- records -----------------------------------------------------------------------------------------------------------
def test_what_was_signed_before_its_certificate_ended_stays_good(pki, member):
    revoke(pki, "north")
    _ship(pki, member)
    trust, now = _south(member).trust, dt.datetime.now(dt.UTC)
    _believes(trust, at=now - dt.timedelta(minutes=5))
    with fails("E201", party="north"):
        _believes(trust, at=now + dt.timedelta(minutes=5))
    outdated = AUTHORITY.issue("north", valid_days=-1)
    _believes(trust, outdated, at=now - dt.timedelta(days=1, minutes=5))
    with fails("E201", party="north"):
        _believes(trust, outdated)
    with fails("E201", party="south"):
        _believes(trust, AUTHORITY.issue("south"), at=now - dt.timedelta(days=2))


# -- pins --------------------------------------------------------------------------------------------------------------
def test_only_a_pinned_certificate_is_believed():
    renewed, boss = AUTHORITY.issue("north"), AUTHORITY.issue("boss", "coordinator")
    pins = {"party/north": frozenset({fingerprint(_certificate(NORTH))})}
    trust = Trust(AUTHORITY.certificate_pem, pins=pins)
    _believes(trust)
    _believes(trust, boss)
    for believe in (lambda: _believes(trust, renewed), lambda: check_peer(trust, _call(renewed))):
        with fails("E201", party="north") as refused:
            believe()
        assert refused.value.party == "north"
    both = Trust(
        AUTHORITY.certificate_pem, pins={"party/north": pins["party/north"] | {fingerprint(_certificate(renewed))}}
    )
    _believes(both)
    _believes(both, renewed)


def test_pins_are_of_a_role():
    other = Trust(AUTHORITY.certificate_pem, pins={"coordinator/north": frozenset({"0" * 64})})
    _believes(other)
    with fails("E201", party="north"):
        _believes(other, AUTHORITY.issue("north", "coordinator"))


def test_ones_own_pin_is_checked_at_the_start(member):
    with fails("E201", party="south"):
        _south(member, pins={"party/south": frozenset({"0" * 64})})


# -- while a connection is open ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("does", ["speaks", "listens"])
@pytest.mark.parametrize("revoked", ["a", "b"], ids=["who dialled", "who accepted"])
def test_a_peer_that_is_revoked_amid_a_session_is_neither_heard_nor_told(tmp_path, revoked, does):
    authority, honest = Authority.create(), {"a": "b", "b": "a"}[revoked]
    for name in "ab":
        authority.write(tmp_path / name)
    trusts = {name: Trust.load(authority.certificate_pem, tmp_path / name / "ca.crt") for name in "ab"}
    identities = {name: dataclasses.replace(authority.issue(name), trust=trusts[name]) for name in "ab"}
    agreed = terms(("a", "b"))

    async def main():
        async with nodes(identities) as links:
            opened = {name: links[name].open(agreed.job_id, ("a", "b")) for name in "ab"}

            def begin(name):
                return Session.establish(
                    agreed,
                    name,
                    opened[name],
                    random=Randomness.from_seed(1).derive(name),
                    executor=ThreadExecutor(1),
                    deadline_s=60,
                    identity=identities[name],
                )

            sessions = dict(zip("ab", await asyncio.gather(begin("a"), begin("b")), strict=True))
            for one, other in (("a", "b"), ("b", "a")):
                await sessions[one].send(other, Note(number=1))
                assert (await sessions[other].recv(one, Note)).number == 1
            serial = _certificate(identities[revoked]).serial_number
            authority.revoke(tmp_path / honest, [serial])  # the honest party has the list, the other has not
            if does == "speaks":
                await sessions[revoked].send(honest, Note(number=2))
                ended = sessions[honest].recv(revoked, Note)
            else:
                ended = sessions[honest].send(revoked, Note(number=2))
            with fails("E201", party=revoked):
                await ended
            received = opened[revoked].conversations[honest].received
            await asyncio.sleep(0.2)
            assert opened[revoked].conversations[honest].received == received

    asyncio.run(main())


def test_a_caller_is_refused_from_the_moment_at_which_its_certificate_expires(pki, member):
    trust = _south(member).trust
    brief = AUTHORITY.issue("brief", valid_days=2 / 86400)
    until = _certificate(brief).not_valid_after_utc
    assert check_peer(trust, _call(brief)) == ("party", "brief")
    while dt.datetime.now(dt.UTC) <= until:
        time.sleep(0.1)
    with fails("E201", party="brief"):
        check_peer(trust, _call(brief))


def test_an_authority_without_an_identifier_of_its_key_issues_and_revokes(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.load_pem_x509_certificate(Authority.create().certificate_pem)
    builder = x509.CertificateBuilder(made.subject, made.subject, key.public_key(), made.serial_number)
    builder = builder.not_valid_before(made.not_valid_before_utc).not_valid_after(made.not_valid_after_utc)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    authority = Authority(pem, secret)
    issued = x509.load_pem_x509_certificate(authority.issue("north").certificate_pem)
    assert authority.has_issued(issued)
    named = issued.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert named == x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    assert authority.revoke(tmp_path, [issued.serial_number]) == 1
    listed = read_list((tmp_path / "ca.crl").read_bytes(), pem, "ca.crl")
    assert set(dates_of(listed)) == {issued.serial_number}
