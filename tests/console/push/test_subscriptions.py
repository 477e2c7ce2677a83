"""Who is told in which browser: their own affair, bounded, recorded, and over with the account."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from console.accounts import Accounts
from console.push.subscriptions import MOST_OF_ONE, OF_A_PROVIDER_S, Subscriptions
from console.push.vapid import VALID_S, authorization, key_of, new_key, public_of
from console.settings import ConsoleSection
from coordinator.console.settings import ConsoleFile
from jobs.audit.console_events import NotificationsBegun, NotificationsEnded
from jobs.audit.events import Event
from jobs.spec.toml import validate
from link.errors import ConfigurationError, ResourceError
from tests.console.push.receiver import Receiver
from tests.console.sites import PASSWORD
from tests.errors import fails

ENDPOINT = "https://fcm.googleapis.com/wp/{}"
BROWSER = Receiver.new()


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    found = Accounts(tmp_path / "console.json")
    for name in ("anna", "vera"):
        found.add(name, "viewer", PASSWORD)
    return found


def add(subscriptions: Subscriptions, person: str, name: object) -> None:
    subscriptions.add(person, **BROWSER.form(ENDPOINT.format(name)))


def test_the_file_is_its_owners_alone_and_has_one_key(tmp_path: Path, accounts: Accounts) -> None:
    path = tmp_path / "push.json"
    ours = Subscriptions(path, accounts)
    assert ours.all() == []
    assert not path.exists()
    key = public_of(ours.key())
    add(ours, "anna", 1)
    assert public_of(Subscriptions(path, accounts).key()) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_everybody_manages_their_own(tmp_path: Path, accounts: Accounts) -> None:
    found: list[Event] = []
    ours = Subscriptions(tmp_path / "push.json", accounts, record=found.append)
    add(ours, "anna", 1)
    add(ours, "vera", 2)
    (own,), (other,) = ours.of("anna"), ours.of("vera")
    with fails("E001"):
        ours.remove("anna", other.id)
    ours.remove("anna", own.id)
    assert [each.person for each in ours.all()] == ["vera"]
    add(ours, "anna", 2)  # the same browser: whoever has asked last is told there
    assert [each.person for each in ours.all()] == ["anna"]
    service = "fcm.googleapis.com"
    assert found == [
        NotificationsBegun(by="anna", service=service),
        NotificationsBegun(by="vera", service=service),
        NotificationsEnded(by="anna", service=service),
        NotificationsBegun(by="anna", service=service),
    ]
    assert str(found[0]) == str(found[2]) == "by anna, through fcm.googleapis.com"


def test_nothing_is_done_that_cannot_be_recorded(tmp_path: Path, accounts: Accounts) -> None:
    def full(event: Event) -> None:
        raise ResourceError("the audit log cannot be written")

    ours = Subscriptions(tmp_path / "push.json", accounts, record=full)
    with pytest.raises(ResourceError):
        add(ours, "anna", 1)
    assert ours.all() == []


def test_a_person_has_so_many_browsers_at_most(tmp_path: Path, accounts: Accounts) -> None:
    ours = Subscriptions(tmp_path / "push.json", accounts)
    for number in range(MOST_OF_ONE):
        add(ours, "anna", number)
    add(ours, "anna", 0)  # once more the same
    with fails("E001"):
        add(ours, "anna", MOST_OF_ONE)
    add(ours, "vera", "v")
    assert len(ours.of("anna")) == MOST_OF_ONE


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": ""},
        {"key": "AAAA"},
        {"key": "not base64!"},
        {"secret": ""},
        {"secret": "AAAA"},
        {"endpoint": "https://127.0.0.1/1"},
    ],
)
def test_what_no_browser_says_is_refused(tmp_path: Path, accounts: Accounts, wrong: dict[str, str]) -> None:
    ours = Subscriptions(tmp_path / "push.json", accounts)
    with fails("E001"):
        ours.add("anna", **{**BROWSER.form(ENDPOINT.format(1)), **wrong})
    assert ours.all() == []


def test_they_end_with_the_account_and_with_its_password(tmp_path: Path, accounts: Accounts) -> None:
    path = tmp_path / "push.json"
    ours = Subscriptions(path, accounts)
    add(ours, "anna", 1)
    add(ours, "vera", 2)
    accounts.add("anna", "viewer", PASSWORD, replace=True)
    accounts.remove("vera")
    assert ours.all() == []
    accounts.add("vera", "viewer", PASSWORD)  # somebody else, perhaps
    assert ours.all() == []
    add(ours, "anna", 3)
    assert [each["endpoint"] for each in json.loads(path.read_text())["subscriptions"]] == [ENDPOINT.format(3)]


def test_who_logs_in_by_a_provider_is_told_for_a_month(tmp_path: Path, accounts: Accounts) -> None:
    now = [1_800_000_000.0]
    ours = Subscriptions(tmp_path / "push.json", accounts, now=lambda: now[0])
    add(ours, "ada@north.example", 1)
    now[0] += OF_A_PROVIDER_S - 1
    (one,) = ours.all()
    assert one.until == now[0] + 1
    now[0] += 1
    assert ours.all() == []
    add(ours, "ada@north.example", 2)
    accounts.add("ada@north.example", "viewer", PASSWORD)
    assert ours.all() == []


def test_what_a_push_service_has_ended_is_forgotten_and_so_is_a_service(tmp_path: Path, accounts: Accounts) -> None:
    path = tmp_path / "push.json"
    ours = Subscriptions(path, accounts, ("push.north.example:8443",))
    add(ours, "anna", 1)
    ours.add("anna", **BROWSER.form("https://push.north.example:8443/1"))
    assert len(Subscriptions(path, accounts).all()) == 1  # no longer the owner's own
    ours.forget(ours.all()[:1])
    assert [each.endpoint for each in ours.all()] == ["https://push.north.example:8443/1"]


@pytest.mark.parametrize("text", ["", "[]", '{"key": "", "subscriptions": []}', '{"key": 1, "subscriptions": {}}'])
def test_a_damaged_file_is_told(tmp_path: Path, accounts: Accounts, text: str) -> None:
    path = tmp_path / "push.json"
    path.write_text(text)
    with fails("E100"):
        Subscriptions(path, accounts).all()


def test_a_push_service_can_tell_who_calls_and_for_whom() -> None:
    key = key_of(new_key())
    scheme, token, public = authorization(key, "https://fcm.googleapis.com", "mailto:it@north.example", 1000).split(" ")
    assert (scheme, public) == ("vapid", f"k={public_of(key)}")
    head, claims, signature = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        for part in token.removeprefix("t=").rstrip(",").split(".")
    )
    assert json.loads(head) == {"typ": "JWT", "alg": "ES256"}
    expected = {"aud": "https://fcm.googleapis.com", "exp": int(1000 + VALID_S), "sub": "mailto:it@north.example"}
    assert json.loads(claims) == expected
    point = base64.urlsafe_b64decode(public_of(key) + "=")
    signed = token.removeprefix("t=").rstrip(",").rpartition(".")[0].encode()
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point).verify(
        encode_dss_signature(r, s), signed, ECDSA(SHA256())
    )


@pytest.mark.parametrize(
    "contents",
    [
        {"push": True},
        {"push_contact": "mailto:it@north.example"},
        {"push_services": ["push.north.example"]},
        {"push": True, "push_contact": "it@north.example"},
        {"push": True, "push_contact": "mailto:it@north.example\n"},
        {"push": True, "push_contact": "http://north.example"},
        {"push": True, "push_contact": "mailto:it@north.example", "push_services": ["https://push.north.example"]},
        {"push": True, "push_contact": "mailto:it@north.example", "push_services": ["*.north.example"]},
        {"push": True, "push_contact": "mailto:it@north.example", "push_services": ["a@push.north.example"]},
    ],
)
def test_wrong_settings_are_told(contents: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        validate(ConsoleSection, contents, "party.toml")


def test_a_coordinators_console_has_nothing_to_tell(tmp_path: Path) -> None:
    file = tmp_path / "console.toml"
    file.write_text('[console]\npush = true\npush_contact = "mailto:it@hub.example"\n')
    with fails("E100"):
        ConsoleFile.load(file)
