"""Parties speak the latest version of the wire protocol that all know; nobody can make them speak an older one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from link.errors import IdentityError, UnexpectedMessage, VersionMismatch
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.session import Session
from link.transports.conformance.messages import Note
from link.transports.memory import Hub
from link.version import WINDOW, Window, latest_common
from protos.v1.link_pb2 import Frame, Hello
from tests.errors import fails
from tests.link.kits import greet, run
from tests.world import terms

WINDOWS = {"north": Window(15, 16), "south": Window(14, 15), "east": Window(15, 17)}
APART = {"north": Window(15, 16), "south": Window(14, 15), "east": Window(16, 17)}


@pytest.fixture(scope="module")
def members() -> dict[str, Identity]:
    authority = Authority.create()
    return {name: authority.issue(name) for name in WINDOWS}


async def met(
    windows: Mapping[str, Window], members: Mapping[str, Identity | None], hub: Hub
) -> list[Session | BaseException]:
    """What comes of a greeting between parties that speak these versions."""
    agreed = terms(tuple(windows))
    return await asyncio.gather(
        *(
            greet(name, hub.endpoint(name), replace(agreed, window=window), identity=members[name])
            for name, window in windows.items()
        ),
        return_exceptions=True,
    )


def test_all_speak_the_latest_version_that_all_know(members: dict[str, Identity]) -> None:
    async def main() -> None:
        sessions = await met(WINDOWS, members, Hub())
        assert all(isinstance(each, Session) for each in sessions), sessions
        assert {each.wire for each in sessions if isinstance(each, Session)} == {15}
        assert len({each.id for each in sessions if isinstance(each, Session)}) == 1

    run(main())


def test_where_two_share_no_version_every_party_learns_which(members: dict[str, Identity]) -> None:
    async def main() -> None:
        for outcome in await met(APART, members, Hub()):
            assert isinstance(outcome, VersionMismatch)
            assert outcome.exit_code == 10
            assert all(each in outcome.message for each in ("south", "14 to 15", "east", "16 to 17"))

    run(main())


def test_the_sentence_names_both_windows_and_who_has_to_upgrade() -> None:
    assert latest_common(WINDOWS) == 15
    with fails("E102", party="south"):
        latest_common(APART)
    with fails("E102", party="south"):
        latest_common({"south": WINDOW, "north": Window(98, 99)})


def spoken(latest: int, frm: str, to: str) -> Callable[[Frame], None]:
    """Changes what one party's greeting of another says that it speaks."""

    def change(frame: Frame) -> None:
        if frame.type == Hello.DESCRIPTOR.full_name and (frame.sender, frame.receiver) == (frm, to):
            hello = Hello.FromString(frame.body)
            hello.version = str(latest)
            frame.body = hello.SerializeToString()

    return change


def test_nobody_between_two_parties_can_take_a_version_from_what_one_says(members: dict[str, Identity]) -> None:
    async def main() -> None:
        alike = dict.fromkeys(("north", "south"), Window(15, 16))
        _, south = await met(alike, members, Hub(spoken(15, "north", "south")))
        assert isinstance(south, IdentityError)

    run(main())


def test_a_party_that_says_other_versions_to_each_peer_leaves_them_without_a_session() -> None:
    """North would speak 15 and east 16: in sessions with other ids, in which no frame of the other is taken."""

    async def main() -> None:
        alike = dict.fromkeys(WINDOWS, Window(15, 16))
        north, _, east = await met(alike, dict.fromkeys(WINDOWS), Hub(spoken(15, "south", "north")))
        assert isinstance(north, Session)
        assert isinstance(east, Session)
        assert (north.wire, east.wire) == (15, 16)
        await north.send("east", Note())
        with pytest.raises(UnexpectedMessage, match="another session"):
            await east.recv("north", Note)

    run(main())


@pytest.mark.parametrize(
    ("latest", "oldest"), [("", ""), ("x", ""), ("15", "16"), ("-1", ""), ("1" * 10, ""), ("٣", "")]
)
def test_what_is_no_window_is_refused(latest: str, oldest: str) -> None:
    with pytest.raises(ValueError, match="version"):
        Window.read(latest, oldest)


def test_a_window_of_one_version_may_come_without_its_first() -> None:
    assert Window.read("15", "") == Window(15, 15)
    assert (str(Window(15, 15)), str(Window(15, 17))) == ("15", "15 to 17")
