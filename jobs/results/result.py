"""What the analyst holds after a job: what is recorded of it, to be saved and shown."""

from __future__ import annotations

from pathlib import Path

from jobs.report.notebook import notebook
from jobs.results.folder import write_result_folder
from jobs.results.record import ResultRecord


class Result(ResultRecord):
    """The result of one job; see `ResultRecord` for what is in it.

    Example:
        >>> result = comine.simulate(job, {"north": rows, "south": rows}, seed=1)
        >>> result
        Result('weekly', rules, 2 parties, 6 rows, 3 itemsets)
        >>> result.save("result")
    """

    def save(self, folder: Path | str) -> None:
        """Writes the result folder: tables, `result.json`, `report.html` and `manifest.json`; all or nothing.

        Raises:
            ConfigurationError: The folder holds something other than an earlier result.
            ResourceError: It cannot be written.
        """
        write_result_folder(Path(folder), self)

    def _repr_html_(self) -> str:
        return notebook(self)
