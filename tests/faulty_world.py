"""Runs parties of whom one may crash, over a network that may change frames."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from crypto.primitives.randomness import Randomness
from link.disclosure import Declared
from link.errors import ComineError
from link.executor import Executor, ThreadExecutor
from link.session import Session
from link.transports.memory import Hub
from protos.v1.link_pb2 import Frame
from tests.world import terms

T = TypeVar("T")
Rewrite = Callable[[Frame], Frame]


class FaultyHub(Hub):
    """Rewrites frames on their way, and takes a party away before its k-th frame."""

    def __init__(self, rewrite: Rewrite, crash: tuple[str, int] | None) -> None:
        super().__init__()
        self.rewrite, self.crashing = rewrite, crash
        self.sent = Counter[str]()
        self.dead: set[str] = set()

    def carry(self, frm: str, to: str, frame: Frame) -> None:
        if self.crashing == (frm, self.sent[frm]):
            self.dead.add(frm)
            self.crash(frm)
        self.sent[frm] += 1
        if frm not in self.dead and to not in self.dead:
            super().carry(frm, to, self.rewrite(frame))


def run_faulty_parties(
    parties: tuple[str, ...],
    role: Callable[[Session], Awaitable[T]],
    declared: Iterable[Declared],
    rewrite: Rewrite = lambda frame: frame,
    crash: tuple[str, int] | None = None,
    seed: int = 0,
    executor: Executor | None = None,
) -> tuple[dict[str, T | BaseException], FaultyHub]:
    """How it ends at each party, which tells its peers of its errors as the host of a session does.

    Args:
        parties: In the order of the job.
        role: What each does.
        declared: What may be opened.
        rewrite: What becomes of each frame on its way.
        crash: A party, and the number of frames that it sends before it is gone.
        seed: Repeats all random draws, those of `world.run_parties` from the same seed.
        executor: Does the local work; threads, if absent, so that messages come in any order.
    """
    hub, executor = FaultyHub(rewrite, crash), executor or ThreadExecutor(2)

    async def party(name: str) -> T:
        random = Randomness.from_seed(seed).derive(name)
        session = await Session.establish(
            terms(parties, seed),
            name,
            hub.endpoint(name),
            random=random,
            executor=executor,
            declared=declared,
            deadline_s=20,
        )
        try:
            return await role(session)
        except ComineError as error:
            await session.abort(error)
            raise

    async def everyone() -> list[T | BaseException]:
        tasks = {name: asyncio.create_task(party(name)) for name in parties}
        await asyncio.wait([task for name, task in tasks.items() if crash is None or name != crash[0]])
        for task in tasks.values():
            task.cancel()
        return await asyncio.gather(*tasks.values(), return_exceptions=True)

    try:
        return dict(zip(parties, asyncio.run(everyone()), strict=True)), hub
    finally:
        executor.close()
