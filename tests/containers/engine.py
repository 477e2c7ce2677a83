"""A Docker engine for tests: the one that answers, else one of Debian's packages that is started and ended here."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.containers import debian
from tests.integration.processes import Ran

INCLUDED = ("python3-venv", "libsodium23")  # of which tests.containers.image makes a base
PACKAGES = ("docker.io", "docker-compose", "iptables", *INCLUDED)
COMMANDS = ("docker", "dockerd", "iptables")
INSTALL_S = 300.0
START_S = 60.0
COMMAND_S = 600.0  # a build takes a minute on a machine that does nothing else


@dataclass(frozen=True)
class Docker:
    """The command line of one engine.

    Attributes:
        environment: Tells the commands which engine is meant.
        ours: Whether the engine was started here, so that nothing else lives in it.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False

    def run(self, *arguments: object, cwd: Path | None = None, **more: str) -> Ran:
        """Runs `docker` to its end."""
        return _run("docker", *arguments, cwd=cwd, environment={**self.environment, **more})

    def __call__(self, *arguments: object, cwd: Path | None = None, **more: str) -> str:
        """What `docker` prints; it must succeed."""
        ran = self.run(*arguments, cwd=cwd, **more)
        assert ran.code == 0, (arguments, ran.out[-4000:], ran.err[-4000:])
        return ran.out.strip()

    def remove_images(self, *tags: str) -> None:
        """Removes images from an engine that stays; from one that is ours they go with all else, at once."""
        if not self.ours:
            self.run("image", "rm", "--force", *tags)

    @property
    def answers(self) -> bool:
        """Whether there is an engine at the other end."""
        return shutil.which("docker") is not None and self.run("version").code == 0

    def compose(self) -> tuple[str, ...] | None:
        """The command that reads compose files, where there is one."""
        if self.run("compose", "version").code == 0:
            return ("docker", "compose")
        return ("docker-compose",) if shutil.which("docker-compose") else None


@contextlib.contextmanager
def engine() -> Iterator[Docker]:
    """An engine; one that was started here is gone afterwards. Skips, saying why, where none can be had."""
    if Docker().answers:
        yield Docker()
        return
    if os.geteuid() != 0:
        pytest.skip("no Docker engine answers, and only root may start one")
    _install()
    if Docker().answers:  # where services start as they are installed
        yield Docker()
        return
    with (
        tempfile.TemporaryDirectory(prefix="comine-engine-", ignore_cleanup_errors=True) as folder,
        _started(Path(folder)) as docker,
    ):
        yield docker


def _install() -> None:
    if all(map(shutil.which, COMMANDS)) and Docker().compose() and set(INCLUDED) <= debian.installed().keys():
        return
    if shutil.which("apt-get") is None:
        pytest.skip("no Docker engine answers, and this system has no apt-get to install one")
    install = ("apt-get", "-o", "DPkg::Lock::Timeout=120", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES)
    for command in (install, ("apt-get", "update", "-qq"), install):
        ran = _run(*command, environment={"DEBIAN_FRONTEND": "noninteractive"}, timeout_s=INSTALL_S)
        if command is install and ran.code == 0:
            return
    pytest.skip(f"no Docker engine answers, and none could be installed: {ran.err.strip()[-300:]}")


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[Docker]:
    """An engine all of whose files are in `folder`, and which leaves the machine's firewall and routing as they are."""
    docker = Docker({"DOCKER_HOST": f"unix://{folder}/docker.sock"}, ours=True)
    command = [
        *("dockerd", "--host", docker.environment["DOCKER_HOST"], "--pidfile", str(folder / "pid")),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + START_S
        while not docker.answers:
            if process.poll() is not None or time.monotonic() > end:
                pytest.skip(f"Docker's engine does not run here: {_last_line(folder / 'log')}")
            time.sleep(0.1)
        yield docker
        for container in docker("ps", "--all", "--quiet").split():
            docker("rm", "--force", "--volumes", container)
        docker("network", "prune", "--force")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _sweep(folder)


def _sweep(folder: Path) -> None:
    """Ends what an engine that was killed leaves behind: shims of its containers, and mounts."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and str(folder).encode() in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{folder}/")), reverse=True):
        _run("umount", "--lazy", place)


def _run(
    *command: object,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = COMMAND_S,
) -> Ran:
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def _last_line(file: Path) -> str:
    return next(iter(reversed(file.read_text(errors="replace").splitlines())), "it said nothing")
