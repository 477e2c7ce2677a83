"""Drivers in the background: processes of their own that drive jobs whose command has returned."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from coordinator.jobs.records.store import JobFolder
from link.errors import ConfigurationError, ResourceError


def start_driver(folder: JobFolder, federation: Path) -> None:
    """Starts a driver for a job and leaves the lock to it; it outlives this process and its terminal.

    Args:
        folder: The job, locked by this process.
        federation: The federation file.

    Raises:
        ResourceError: No process can be started.
    """
    lock = folder.lock_number
    command = [sys.executable, "-P", "-m", "comine", "job", "drive", folder.id, "--lock", str(lock)]
    command += ["--federation", str(federation.absolute())]
    try:
        log = os.open(folder.path / "driver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                start_new_session=True,
                pass_fds=[lock],
            )
        finally:
            os.close(log)
            folder.unlock()
    except OSError as error:
        raise ResourceError(
            f"no driver can be started for the job ({error.strerror}); take it up with: comine job watch "
            f"{folder.id[:12]}"
        ) from None
    threading.Thread(target=child.wait, daemon=True).start()  # no zombie stays with a long-lived parent


def take_up(folder: JobFolder, federation: Path) -> bool:
    """Starts a driver where none lives; whether that was so.

    Raises:
        ResourceError: No process can be started.
    """
    if not folder.lock():
        return False
    start_driver(folder, federation)
    return True


def take_up_all(folders: Sequence[JobFolder], federation: Path) -> list[JobFolder]:
    """Starts a driver for each job that goes on and has none, whoever finds it; those jobs.

    Raises:
        ResourceError: No process can be started.
    """
    taken = []
    for folder in folders:
        try:
            goes_on = not folder.record().job.over
        except ConfigurationError:
            continue
        if goes_on and take_up(folder, federation):
            taken.append(folder)
    return taken
