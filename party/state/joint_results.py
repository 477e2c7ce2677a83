"""What counts of exact jobs for what several reveal together, once each: parties, thresholds, versions of the rows.

Nothing is taken back when a job fails, or is forgotten: what it opened before, others may have kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from party.policy.joint_result import JointResult
from party.policy.policy_input import Version
from party.state.node_database import NodeTables

_RECOUNTED: Final = "joint results with columns"


class JointResults(NodeTables):
    """These tables. Calls are short, and may be made from any thread."""

    def note_result(self, dataset: str, result: JointResult) -> None:
        """Notes what counts of a job; it is on disk when this returns, before anything of the job can leave.

        Raises:
            ComineError: It cannot be written, so the job must not start.
        """
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO joint_results VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", _row(dataset, result)
            )

    def results(self, datasets: Iterable[str]) -> frozenset[JointResult]:
        """What counts of all jobs on some datasets."""
        statement = "SELECT parties, sums, threshold, columns FROM joint_results WHERE dataset = ?"
        with self._using() as connection:
            return frozenset(
                JointResult(tuple(parties.split(" ")), bool(sums), threshold, columns)
                for dataset in datasets
                for parties, sums, threshold, columns in connection.execute(statement, (dataset,)).fetchall()
            )

    @property
    def has_all_results(self) -> bool:
        """Whether all jobs count; an earlier version noted none."""
        with self._using() as connection:
            found = connection.execute("SELECT 1 FROM recounted WHERE what = ?", (_RECOUNTED,)).fetchone()
        return found is not None

    def recount_results(self, results: Iterable[tuple[str, JointResult]]) -> None:
        """Notes what counts of all jobs that are still known, by dataset.

        Raises:
            ComineError: It cannot be written.
        """
        with self._changing() as connection:
            connection.executemany(
                "INSERT INTO joint_results VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [_row(dataset, result) for dataset, result in results],
            )
            connection.execute("INSERT INTO recounted VALUES (?) ON CONFLICT DO NOTHING", (_RECOUNTED,))

    def note_version(self, dataset: str, version: Version, *, forgive: bool = False) -> None:
        """Notes on what rows a job runs.

        Args:
            dataset: Of its name.
            version: The rows.
            forgive: Whether those count no more of which nobody knows what they were.

        Raises:
            ComineError: It cannot be written.
        """
        with self._changing() as connection:
            if forgive:
                connection.execute("DELETE FROM row_versions WHERE dataset = ? AND n_rows IS NULL", (dataset,))
            connection.execute(
                "INSERT INTO row_versions VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (dataset, version.digest, version.n_rows),
            )

    def versions(self, dataset: str) -> list[Version]:
        """On what rows of a dataset jobs ran."""
        statement = "SELECT n_rows, digest FROM row_versions WHERE dataset = ?"
        with self._using() as connection:
            return [Version(*row) for row in connection.execute(statement, (dataset,)).fetchall()]


def _row(dataset: str, result: JointResult) -> tuple[str, str, bool, str, str]:
    return dataset, " ".join(result.parties), result.sums, result.threshold, result.columns
