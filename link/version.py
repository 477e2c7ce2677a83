"""The version of the software, and those of the messages between nodes that it speaks.

Nodes whose windows of versions overlap work together, whatever their software: they speak the latest version that all
of them know. It is agreed on in the greeting (`link.session`), where every party signs its whole window.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple

from link.errors import VersionMismatch

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class Window(NamedTuple):
    """The versions of the wire protocol that a node speaks.

    Attributes:
        oldest: The first of them.
        latest: The last of them.
    """

    oldest: int
    latest: int

    @classmethod
    def read(cls, latest: str, oldest: str) -> Window:
        """A window as it came from elsewhere.

        Args:
            latest: Its last version.
            oldest: Its first; empty where it has one alone.

        Raises:
            ValueError: It is none.
        """
        if not all(_NUMBER.fullmatch(each) for each in (latest, oldest or latest)):
            raise ValueError("versions are whole numbers")
        found = cls(int(oldest or latest), int(latest))
        if found.oldest > found.latest:
            raise ValueError("the first version is behind the last")
        return found

    def __str__(self) -> str:
        return str(self.latest) if self.oldest == self.latest else f"{self.oldest} to {self.latest}"


WINDOW: Final = Window(23, 25)  # in 24 two compute where parties may deviate, in 25 checks of transfers are apart
WIRE_VERSION: Final = str(WINDOW.latest)


def latest_common(windows: Mapping[str, Window]) -> int:
    """The latest version that all speak.

    Args:
        windows: By who speaks them; two at least.

    Raises:
        VersionMismatch: There is none; it names two who share none.
    """
    late = max(windows, key=lambda name: windows[name].oldest)
    early = min(windows, key=lambda name: windows[name].latest)
    if windows[late].oldest > windows[early].latest:
        raise VersionMismatch(
            f"{early} speaks version {windows[early]} of the wire protocol and {late} version {windows[late]}; upgrade "
            f"comine at {early}, or all to releases that share a version",
            party=early,
        )
    return windows[early].latest


@cache
def software_version() -> str:
    """The version of comine that runs."""
    try:
        return version("comine")
    except PackageNotFoundError:
        return "unknown"
