"""The same notices in people's browsers, as notifications: in few words, to each who has asked for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from link.errors import ComineError
from link.logs.structured import Log

if TYPE_CHECKING:
    from console.push.subscriptions import Subscription, Subscriptions

WAITING: Final = 64  # notices; those that come while so many wait are told to no browser
PAUSES_S: Final = (1.0, 5.0)  # before the second and the third try
CLOSE_S: Final = 2.0  # for what waits when the node stops
DIGITS: Final = 8  # of a job's id, which its page is found by
LOST: Final = "lost"

_JOBS: Final = {
    "inbox": ("A job awaits a decision", "/inbox"),
    "held": ("A result awaits its release", "/jobs"),
    "end": ("A job has ended", "/jobs"),
    "expiry": ("A proposal has expired", "/inbox"),
}
_CERTIFICATE: Final = ("The certificate of the party ends soon", "/peers")
_BUDGET: Final = ("A limit on jobs is nearly used up", "/budgets")


def told(notice: Mapping[str, Any]) -> bytes:
    """What a notice says in a browser: what kind of thing it is, how the job's id begins, and nothing else.

    Args:
        notice: As the command or the webhook gets it.
    """
    job = notice.get("job")
    if job is None:
        text, path = _CERTIFICATE if "certificate" in notice else _BUDGET
    else:
        text, path = _JOBS[notice["event"]]
        digits = job["job_id"][:DIGITS]
        text, path = f"{text}: {digits}", f"{path}/{digits}"
    return json.dumps({"title": "comine", "text": text, "path": path}).encode()


class Pushes:
    """A queue of notices for browsers. To be used on the event loop only; `put` never waits.

    None is kept over a restart: who misses one finds the job in the inbox.

    Args:
        subscriptions: Who has asked for them.
        contact: Whom push services can reach.
        log: The node's log; it has one line as long as a push service fails.
        count: Counts by outcome what has become of them.
    """

    def __init__(self, subscriptions: Subscriptions, contact: str, log: Log, count: Callable[[str, int], None]) -> None:
        self._subscriptions, self._contact, self._log, self._count = subscriptions, contact, log, count
        self.waiting: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(WAITING)
        self._failing: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def put(self, notice: Mapping[str, Any]) -> None:
        """Takes a notice."""
        try:
            self.waiting.put_nowait(notice)
        except asyncio.QueueFull:
            self._count(LOST, 1)
            return
        if self._task is None:
            self._task = asyncio.create_task(self._deliver())

    async def close(self) -> None:
        """Tells what waits, as far as there is time."""
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.waiting.join(), CLOSE_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _deliver(self) -> None:
        while True:
            notice = await self.waiting.get()
            try:
                await self._tell(told(notice))
            except ComineError as error:
                self._log.error("push failed", error=error)
            finally:
                self.waiting.task_done()

    async def _tell(self, message: bytes) -> None:
        """Tells all browsers, and those once more that did not get it."""
        from console.push.sending import send

        left: Sequence[Subscription] = await asyncio.to_thread(self._subscriptions.all)
        for pause_s in (0.0, *PAUSES_S):
            if not left:
                return
            await asyncio.sleep(pause_s)
            outcomes = await send(self._subscriptions, left, message, self._contact)
            by_outcome = {
                outcome: [each for each, found in zip(left, outcomes, strict=True) if found == outcome]
                for outcome in ("OK", "gone", "failed")
            }
            if by_outcome["gone"]:
                await asyncio.to_thread(self._subscriptions.forget, by_outcome["gone"])
            for outcome in ("OK", "gone"):
                self._count(outcome, len(by_outcome[outcome]))
            self._failing -= {self._host(each) for each in by_outcome["OK"]}
            left = by_outcome["failed"]
        self._count("failed", len(left))
        for host in sorted({self._host(each) for each in left} - self._failing):
            self._log.warning("push failed", address=host)
            self._failing.add(host)

    def _host(self, browser: Subscription) -> str:
        return self._subscriptions.place_of(browser).host
