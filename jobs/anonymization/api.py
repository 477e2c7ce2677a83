"""`comine.anonymize`: a configuration run from Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from anonymize.certificate import Certificate
from anonymize.release import Release
from jobs.anonymization.folder import holds_earlier, write_folder
from jobs.anonymization.inputs import Inputs, load
from jobs.anonymization.running import run
from jobs.results.destination import check_result_folder


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
