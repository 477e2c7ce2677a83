"""Tells the service manager that started this process how it is: systemd's protocol, `sd_notify(3)`."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Final

PLACE: Final = "NOTIFY_SOCKET"


class ServiceManager:
    """Who started this process, if that wants to know.

    Args:
        place: The Unix socket at which it listens, with `@` before an abstract name; empty where nobody does.
    """

    def __init__(self, place: str = "") -> None:
        self._place = f"\0{place[1:]}" if place.startswith("@") else place

    @classmethod
    def of_environment(cls) -> ServiceManager:
        """Who is named in the environment, from which the name is taken: programs that are started say nothing."""
        return cls(os.environ.pop(PLACE, ""))

    def ready(self) -> None:
        """The process answers."""
        self._tell("READY=1")

    def stopping(self) -> None:
        """The process has begun to end."""
        self._tell("STOPPING=1")

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Meanwhile the process reads its files anew; however that goes, it answers afterwards."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self.ready()

    def _tell(self, state: str) -> None:
        if not self._place:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # whoever does not read must not hold up a node
            sender.sendto(state.encode(), self._place)
