"""What a run of the benchmarks is told on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
PARTIES = ("north", "south", "east")
ROWS = (1_000_000, 5_000_000)


@dataclass(frozen=True)
class Settings:
    """Settings of one run.

    Attributes:
        quick: Small inputs and single runs, to see that everything works; the numbers mean nothing.
        progress: Where progress is told.
        chosen_rows: Numbers of rows that were asked for; empty: those by default.
        minutes: For which a federation works in the section `soak`; None: those by default.
    """

    quick: bool
    progress: Console
    chosen_rows: tuple[int, ...] = ()
    minutes: float | None = None

    @property
    def repeats(self) -> int:
        """Runs of which the best counts."""
        return 1 if self.quick else 3

    @property
    def rows(self) -> tuple[int, ...]:
        """Of files that are made as long as wanted."""
        return self.chosen_rows or ((100_000,) if self.quick else ROWS)

    @property
    def peers_python(self) -> Path | None:
        """The interpreter of the environment with the peers, where `make bench-peers` has made it."""
        return _python_of(".venv-peers")

    @property
    def ldp_peers_python(self) -> Path | None:
        """The interpreter of the environment with libraries of local differential privacy, which need old versions."""
        return _python_of(".venv-peers-ldp")

    @property
    def anonymize_peers_python(self) -> Path | None:
        """The interpreter of the environment with tools of anonymisation."""
        return _python_of(".venv-peers-anonymize")

    @property
    def spark_python(self) -> Path | None:
        """The interpreter of the environment with Spark, where there is one."""
        return _python_of(".venv-spark")

    def tell(self, what: str) -> None:
        """A line of progress."""
        self.progress.print(f"… {what}", style="dim", highlight=False)


def _python_of(environment: str) -> Path | None:
    python = ROOT / environment / "bin" / "python"
    return python if python.is_file() else None
