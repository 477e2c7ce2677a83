"""Processes for the partitions of the work; one that is lost costs a retry of its partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, Final, TypeVar

from link.errors import ResourceError
from link.runtime.process_executor import begin, undisturbed
from mining.partitioned.cores import Cores

R = TypeVar("R")

_TRIES: Final = 2  # of a partition, whose worker has died


class Workers:
    """Processes that start when there is work for them, and end with `close`, or with this process.

    Processes are spawned, so that they inherit no keys, streams or sockets.

    Args:
        number: The most that there are.
        cores: Those that are shared with others; by default, as many as processes, and shared with no one.
    """

    def __init__(self, number: int, cores: Cores | None = None) -> None:
        self.number = number
        self._cores = cores or Cores(number)
        self._closed = False
        self._lock = threading.Lock()  # one call at a time
        self._workers: list[_Worker] = []

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> list[R]:
        """What a function of a module gives for some calls, in order, each at a worker of its own if there is one.

        Args:
            function: Picklable, as are arguments and results.
            calls: Arguments of at most `number` calls.

        Raises:
            ResourceError: Over one call two workers have died, or none can be started, or `close` was called.
        """
        with self._lock:
            results: dict[int, R] = {}
            for _ in range(_TRIES):
                if self._closed:
                    raise _ended()
                left = [place for place in range(len(calls)) if place not in results]
                results |= self._run_some(function, {place: calls[place] for place in left})
                if len(results) == len(calls):
                    return [results[place] for place in range(len(calls))]
        raise ResourceError(
            "two worker processes have died over the same rows, perhaps for lack of memory; free some, or use "
            "a machine with more"
        )

    def close(self) -> None:
        """Ends the workers at once, whatever they are at, from whatever thread."""
        self._closed = True
        for worker in self._workers:
            worker.end()
        self._cores.give_up(self)

    def _run_some(self, function: Callable[..., R], calls: dict[int, tuple[Any, ...]]) -> dict[int, R]:
        """The results of those calls whose workers have lived; the others are replaced."""
        number = self._cores.allot(self, max(len(calls), len(self._workers)))
        while len(self._workers) > number:
            self._workers.pop().end()
        while len(self._workers) < number:
            self._workers.append(_Worker())
        doing = {place: self._workers[turn % number] for turn, place in enumerate(calls)}
        running = {place: doing[place].submit(function, arguments) for place, arguments in calls.items()}
        if self._closed:  # perhaps before they were started
            self.close()
        results: dict[int, R] = {}
        failure: Exception | None = None
        for place, future in running.items():
            try:
                results[place] = future.result()
            except (BrokenProcessPool, CancelledError):  # the latter where it waited for a worker that was ended
                if self._closed:
                    failure = _ended()
                else:
                    self._replace(doing[place])
            except Exception as error:  # of the function; the others' results are awaited, so that nothing is left over
                failure = failure or error
        if failure is not None:
            raise failure
        return results

    def _replace(self, worker: _Worker) -> None:
        """Has another one in the place of a worker that has died; several calls may tell so."""
        if worker in self._workers:
            worker.end()
            self._workers[self._workers.index(worker)] = _Worker()


def _ended() -> ResourceError:
    return ResourceError("the workers over these rows were ended, since their job has ended")


class _Worker:
    """One process, in a pool of its own, so that its death leaves the others alone."""

    def __init__(self) -> None:
        context = get_context("spawn")
        needed, self._need = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, context, initializer=begin, initargs=(needed,))

    def submit(self, function: Callable[..., R], arguments: tuple[Any, ...]) -> Future[R]:
        try:
            with undisturbed():
                return self._pool.submit(function, *arguments)
        except BrokenProcessPool as error:  # it has died since the last call
            lost: Future[R] = Future()
            lost.set_exception(error)
            return lost
        except OSError as error:
            raise ResourceError(
                f"no worker process can be started ({error.strerror}); end other processes, or use a machine with more "
                "memory"
            ) from None

    def end(self) -> None:
        """Ends the process: it watches the other end of this pipe."""
        self._need.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
