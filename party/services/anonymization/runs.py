"""Runs in processes of their own: they do not hold the node up, have bounded memory, and end when nobody waits."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from link.errors import ComineError, DeadlineExceeded, InternalError, PeerError, ResourceError, from_code
from link.files.json_text import read_json
from link.files.quantities import seconds
from party.config import DatasetSection
from party.jobs.endings.tables import write_whole
from party.services.anonymization.policy import MEGABYTE, AnonymizationRules

FOLDER: Final = "anonymization"  # in the state folder
ERRORS: Final = "stderr"
_REASON_BYTES: Final = 1 << 16
_FOR_WANT_OF_MEMORY: Final = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT)  # by the kernel, or by libraries in C


@dataclass(frozen=True, slots=True)
class Made:
    """A release that has not left yet.

    Attributes:
        folder: Of the run.
        rows: Digest of its rows.
        certificate: Digest of its certificate.
        published: How many rows it has.
    """

    folder: Path
    rows: bytes
    certificate: bytes
    published: int


@dataclass(frozen=True, slots=True)
class Unmet:
    """A run that came to nothing since the rows are as they are.

    Attributes:
        error: What the caller is told.
    """

    error: ComineError


class Runs:
    """Folders and processes of runs.

    Args:
        folder: For the folders of runs; what an earlier process of the node left there is removed.
        me: This party.

    Attributes:
        processes: That run.

    Raises:
        ResourceError: The folder cannot be written.
    """

    def __init__(self, folder: Path, me: str) -> None:
        self._folder, self._me = folder, me
        self.processes: set[asyncio.subprocess.Process] = set()
        self._stopped = False
        with self._on_disk():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for left in folder.iterdir():
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[Path]:
        """A folder for a run; it is gone when the context ends."""
        with self._on_disk():
            place = Path(tempfile.mkdtemp(dir=self._folder))  # for the owner alone
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def put(self, place: Path, files: Mapping[str, str]) -> None:
        """Writes what came with a request into its folder.

        Raises:
            ResourceError: The disk refuses it.
        """
        with self._on_disk():
            for name, text in files.items():
                (place / name).write_text(text, encoding="utf-8")

    async def make(
        self, place: Path, spec: Mapping[str, Any], dataset: DatasetSection, rules: AnonymizationRules
    ) -> Made | Unmet:
        """Runs the algorithm of a request.

        Args:
            place: The run's folder.
            spec: The request as JSON, with the dataset's own source.
            dataset: Of which it is; its columns of ids name persons.
            rules: What bounds the run.

        Returns:
            The release; or that the rows allow none, in a sentence that holds no data. Why is in a file beside the
            folders of runs.

        Raises:
            ComineError: The run broke off for another reason than what the rows hold.
            DeadlineExceeded: The run took too long, and was ended.
        """
        if self._stopped:
            raise self._stopping_error()
        task = {
            "party": self._me,
            "dataset": dataset.name,
            "persons": dataset.id,
            "folder": str(place),
            "spec": spec,
            "max_memory": rules.max_memory * MEGABYTE,
        }
        with self._on_disk(), (place / ERRORS).open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "party.services.anonymization.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                # The pool is one that the bound of memory sees; copies of sources go where the run's folder goes.
                env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "TMPDIR": str(place)},
                start_new_session=True,  # a signal from the node's terminal is for the node to handle
            )
        self.processes.add(process)
        try:
            async with asyncio.timeout(seconds(rules.max_time)):
                answer = await last_output(process, task)
        except TimeoutError:
            raise DeadlineExceeded(
                f"a release of '{dataset.name}' took longer than {self._me} lets a run take ({rules.max_time}, "
                "max_time); take fewer columns, coarser hierarchies, or another algorithm",
                party=self._me,
            ) from None
        finally:
            await self._end(process)
        return self._read(answer, process, place, dataset.name)

    async def stop(self) -> None:
        """Ends all runs; anyone who waits for one is told so."""
        self._stopped = True
        await asyncio.gather(*map(self._end, tuple(self.processes)))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        self.processes.discard(process)

    def _read(self, answer: bytes, process: asyncio.subprocess.Process, place: Path, dataset: str) -> Made | Unmet:
        try:
            outcome = read_json(answer)
        except ValueError:
            raise self._crashed(process, place, dataset) from None
        if "error" in outcome:
            self._keep(dataset, outcome["reason"].encode("utf-8", "replace"))
            error = from_code(outcome["error"], outcome["sentence"], party=self._me)
            if outcome["of_rows"]:
                return Unmet(error)
            raise error
        rows, certificate = (bytes.fromhex(outcome[key]) for key in ("rows", "certificate"))
        return Made(place, rows, certificate, outcome["published"])

    def _crashed(self, process: asyncio.subprocess.Process, place: Path, dataset: str) -> ComineError:
        if self._stopped:
            return self._stopping_error()
        with suppress(OSError):
            self._keep(dataset, (place / ERRORS).read_bytes()[-_REASON_BYTES:])
        if process.returncode in _FOR_WANT_OF_MEMORY:
            return ResourceError(
                f"a run on '{dataset}' broke off at {self._me}, most likely for want of memory (max_memory); take "
                "fewer columns, or another algorithm",
                party=self._me,
            )
        return InternalError(
            f"{self._me} met a fault of its own in the run on '{dataset}'; its state folder has the details",
            party=self._me,
        )

    def _keep(self, dataset: str, reason: bytes) -> None:
        with suppress(ResourceError):
            write_whole(self._folder / f"{dataset}.reason", reason + b"\n")

    def _stopping_error(self) -> PeerError:
        return PeerError(f"{self._me} is being stopped; ask again when its node is back", party=self._me)

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ResourceError(
                f"{self._me} cannot write its state folder ({error.strerror}); its operator has to see to the disk",
                party=self._me,
            ) from None


async def last_output(process: asyncio.subprocess.Process, task: Mapping[str, Any]) -> bytes:
    """What a process says at its end; its standard input stays open until then."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(task).encode() + b"\n")
        await process.stdin.drain()
    answer = await process.stdout.read()
    await process.wait()
    return answer
