"""A real Spark Connect server, `local-cluster[2,1,1024]`, from an environment of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv-spark" / "bin" / "python"
RESULTS = 48 << 20  # bytes that a job's tasks may return together, and that a message may have
MESSAGE = 16 << 20
# No server lives so long that more would pay, and its classes are those that were installed.
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


class SparkServer:
    """The server, its two workers and what they write.

    Args:
        folder: For all of it.
        jars: Of packages that the cluster has besides.
        conf: Settings that these need.

    Attributes:
        url: By which a node finds it.
        logs: Folders and files of its logs, and of the events from which Spark's UI is made.
    """

    def __init__(self, folder: Path, jars: Sequence[str] = (), conf: Mapping[str, str] = MappingProxyType({})) -> None:
        if shutil.which("java") is None:
            pytest.skip("there is no Java")
        if not PYTHON.exists():
            pytest.skip("there is no .venv-spark; `make .venv-spark/.installed` makes it")
        home = next(PYTHON.parents[1].glob("lib/python3*/site-packages/pyspark"), None)
        if home is None:
            pytest.skip("there is no pyspark in .venv-spark; `make .venv-spark/.installed` installs it")
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = found.getsockname()[1]
        self.url = f"sc://127.0.0.1:{self._port}"
        own = _without_archives(home, folder / "home")
        events, self._log = folder / "events", folder / "server.log"
        events.mkdir()
        self.logs = (events, self._log, folder / "work")
        settings = {
            "spark.driver.memory": "1g",
            "spark.driver.maxResultSize": f"{RESULTS}b",
            "spark.connect.grpc.maxInboundMessageSize": f"{MESSAGE}b",
            "spark.executor.memory": "600m",
            "spark.python.daemon.module": "loaded_daemon",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent),
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            **conf,
        }
        variables = {
            "SPARK_HOME": str(own),
            "PYSPARK_PYTHON": str(PYTHON),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        command = [str(own / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        command += ["--jars", ",".join(jars)] if jars else []
        command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        self._command, self._variables, self._folder = [*command, "spark-internal"], inherited | variables, folder
        self.start()

    def start(self) -> None:
        """Starts the server, once more where it was killed, and waits until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._variables,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while not self._answers():
            if self._process.poll() is not None:
                pytest.fail(f"Spark has not started: {self._log.read_text()[-2000:]}")
            time.sleep(0.2)

    def kill_executor(self) -> None:
        """Ends one of the processes that hold blocks and run tasks, at once; Spark starts another."""
        for place in Path("/proc").glob("[0-9]*"):
            try:
                command, group = (place / "cmdline").read_bytes(), os.getpgid(int(place.name))
            except OSError:  # it has ended
                continue
            if b"CoarseGrainedExecutorBackend" in command and group == self._process.pid:
                os.kill(int(place.name), signal.SIGKILL)
                return
        pytest.fail("Spark has no executor")

    def _answers(self) -> bool:
        with socket.socket() as found:
            return found.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        """Ends all of it at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _without_archives(home: Path, folder: Path) -> Path:
    """Spark's home without its archive of pyspark, which Python workers would compile: they read what is installed."""
    folder.mkdir()
    for place in home.iterdir():
        if place.name != "python":
            (folder / place.name).symlink_to(place)
    return folder
