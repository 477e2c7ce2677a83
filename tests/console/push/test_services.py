"""Where notifications may go: a browser's word is no reason to call anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.push.services import KNOWN, place_of
from tests.errors import fails


@pytest.mark.parametrize(
    ("endpoint", "origin"),
    [
        ("https://fcm.googleapis.com/fcm/send/d1:APA91b-_x", "https://fcm.googleapis.com"),
        ("https://fcm.googleapis.com:443/wp/1", "https://fcm.googleapis.com"),
        ("https://updates.push.services.mozilla.com/wpush/v2/gAAA", "https://updates.push.services.mozilla.com"),
        ("https://web.push.apple.com/QPb", "https://web.push.apple.com"),
        ("https://wns2-par02p.notify.windows.com/w/?token=BQ%2b", "https://wns2-par02p.notify.windows.com"),
        ("https://push.north.example:8443/1", "https://push.north.example:8443"),
    ],
)
def test_known_services_and_the_owners_own(endpoint: str, origin: str) -> None:
    assert place_of(endpoint, ("push.north.example:8443",)).origin == origin


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "http://fcm.googleapis.com/wp/1",
        "ftp://fcm.googleapis.com/wp/1",
        "HTTPS://fcm.googleapis.com/wp/1",
        "//fcm.googleapis.com/wp/1",
        "https://fcm.googleapis.com",
        "https://fcm.googleapis.com/",
        "https://fcm.googleapis.com:8443/wp/1",
        "https://fcm.googleapis.com:99999/wp/1",
        "https://fcm.googleapis.com./wp/1",
        "https://FCM.googleapis.com/wp/1",
        "https://fcm.googleapis.com@127.0.0.1/wp/1",
        "https://fcm.googleapis.com:x@evil.example/wp/1",
        "https://user@fcm.googleapis.com/wp/1",
        "https://fcm.googleapis.com\\@evil.example/1",
        "https://fcm.googleapis.com/wp/1#part",
        "https://fcm.googleapis.com/wp 1",
        "https://fcm.googleapis.com/wp\r\nHost: evil.example",
        "https://fcm.googleapis.com/wp/1\n",
        "https://fcm.googleapis.com.evil.example/1",
        "https://evil.example/fcm.googleapis.com",
        "https://notify.windows.com/w/1",
        "https://evilnotify.windows.com/w/1",
        "https://a.web.push.apple.com/1",
        "https://127.0.0.1/1",
        "https://127.0.0.1:7101/1",
        pytest.param("https://[::1]/1", id="IPv6"),
        "https://2130706433/1",
        "https://localhost/1",
        "https://169.254.169.254/latest/meta-data",
        "https://push.north.example/1",
        "https://push.north.example:18443/1",
        f"https://fcm.googleapis.com/{'a' * 2000}",
        "https://fcm.googleapis.com/\N{SNOWMAN}",
    ],
)
def test_nothing_else_is_called(endpoint: str) -> None:
    with fails("E001"):
        place_of(endpoint, ("push.north.example:8443",))


def test_the_documented_list_is_the_lists() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tasks" / "console.md").read_text()
    assert [host for host in KNOWN if f"`{host}`" not in page] == []
