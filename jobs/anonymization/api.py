"""`comine.anonymize`: a configuration run from Python."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.release import Release
from jobs.anonymization.folder import holds_earlier, write_folder
from jobs.anonymization.inputs import Inputs, load
from jobs.anonymization.running import run
from jobs.report.text import visible
from jobs.results.destination import check_result_folder

_SHOWN: Final = 5  # rows in a notebook


@dataclass(frozen=True, eq=False)
class Anonymized:
    """The outcome of a configuration.

    Attributes:
        inputs: The configuration with all that it names.
        release: The rows, their classes, what was suppressed, and the work that was done.

    Example:
        >>> release = comine.anonymize("people.toml")
        >>> release.table.num_rows
        10
        >>> release.save("release").statement  # the certificate's, in words
        '...'
    """

    inputs: Inputs
    release: Release

    @property
    def warnings(self) -> list[str]:
        """What columns that are released as they are may reveal about persons, as sentences."""
        return self.inputs.warnings

    @property
    def table(self) -> pa.Table:
        """The rows that may be published."""
        return self.release.table

    def _repr_html_(self) -> str:
        cells = [_row("td", row.values()) for row in self.table.slice(0, _SHOWN).to_pylist()]
        classes = f", {self.release.n_classes:,} classes" if self.release.classes is not None else ""
        suppressed = f", {len(self.release.suppressed):,} suppressed" if len(self.release.suppressed) else ""
        return "".join(
            (
                f"<div><b>{self.table.num_rows:,} rows that may be published</b>{classes}{suppressed}; ",
                f"{escape(self.release.algorithm)}</div>",
                f"<table><thead>{_row('th', self.table.column_names)}</thead><tbody>{''.join(cells)}</tbody></table>",
                *(f"<div>{escape(visible(warning))}</div>" for warning in self.warnings),
                '<div><code>.table</code> has all rows; <code>.save("folder")</code> certifies them.</div>',
            )
        )

    def save(self, out: str | os.PathLike[str]) -> Certificate:
        """Writes the folder of `comine anonymize run`; an earlier release in its place is replaced.

        Returns:
            The certificate.

        Raises:
            ConfigurationError: `out` is a file, or holds something other than an earlier release.
            ResourceError: The disk is full, or the folder cannot be written.
        """
        check_result_folder(Path(out), holds_earlier)
        return write_folder(Path(out), self.inputs, self.release)


def _row(cell: str, values: Iterable[object]) -> str:
    texts = ("" if value is None else escape(visible(str(value))) for value in values)
    return f"<tr>{''.join(f'<{cell}>{text}</{cell}>' for text in texts)}</tr>"


def anonymize(config: str | os.PathLike[str]) -> Anonymized:
    """Runs a configuration of `comine anonymize run`.

    Args:
        config: Its file.

    Raises:
        ComineError: The configuration or the data is at fault, or the models cannot be met; the message says why.

    Example:
        >>> comine.anonymize("people.toml").table.column_names
        ['age', 'town', 'illness']
    """
    inputs = load(Path(config))
    return Anonymized(inputs, run(inputs))
