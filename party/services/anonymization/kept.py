"""What a node keeps of releases that have left, for its people: certificate, report, and where some originals stand.

It is in a folder of the state folder, in files that only the node's user may read. Nothing depends on it: what counts
is in `releases.db`, and whoever deletes a file here deletes what is shown of that release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from anonymize.certificate import Certificate
from jobs.anonymization.inputs import read_source
from jobs.anonymization.spec import OF_SOURCE, AnonymizationSpec
from jobs.spec.toml import validate
from link.errors import InputDataError
from link.files.private_file import replace_private
from party.config import DatasetSection
from party.services.anonymization.request import source_of
from party.services.anonymization.sample import Sample

FOLDER: Final = "releases"  # in the state folder
MOST: Final = 20  # of one dataset; earlier ones go
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class KeptRelease(BaseModel):
    """What is kept of one release.

    Attributes:
        dataset: Of which dataset.
        coordinator: Who asked for it.
        at: When it left, Unix seconds.
        asked: The configuration, without where the rows are.
        certificate: Its certificate.
        sample: Some of its rows; None where they have no originals, or were made in blocks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    coordinator: str
    at: float
    asked: dict[str, Any]
    certificate: Certificate
    sample: Sample | None = None

    def originals(self, dataset: DatasetSection) -> list[list[str]]:
        """The originals of the sample, read from the dataset now.

        Raises:
            ComineError: The dataset cannot be read, or has changed since.
        """
        if self.sample is None:
            raise InputDataError("no rows of this release have originals that could stand beside them")
        spec = validate(AnonymizationSpec, {"anonymize": self.asked | source_of(dataset)}, "the release").anonymize
        return self.sample.before(read_source(spec, Path()))


class KeptReleases:
    """The folder.

    Args:
        state: The node's state folder.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    def keep(self, release: KeptRelease, report: bytes | None) -> None:
        """Keeps a release, and of its dataset not more than `MOST`.

        Raises:
            OSError: It cannot be written.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        place = self._folder / f"{release.certificate.digest}.json"
        if report is not None:
            replace_private(place.with_suffix(".html"), report)
        replace_private(place, release.model_dump_json(by_alias=True).encode())
        for old in [each for each in self.all() if each.dataset == release.dataset][MOST:]:
            for suffix in (".json", ".html"):
                (self._folder / f"{old.certificate.digest}{suffix}").unlink(missing_ok=True)

    def all(self) -> list[KeptRelease]:
        """All that is kept, the latest first; files that are none are left out."""
        return sorted(self._read(), key=lambda each: -each.at)

    def find(self, digest: str) -> KeptRelease | None:
        """What is kept of a release, by the digest of its certificate."""
        return next(self._read(f"{digest}.json"), None) if _DIGEST.fullmatch(digest) else None

    def report(self, digest: str) -> bytes | None:
        """The report of a release; None where there is none."""
        with suppress(OSError):
            return (self._folder / f"{digest}.html").read_bytes() if _DIGEST.fullmatch(digest) else None
        return None

    def _read(self, pattern: str = "*.json") -> Iterator[KeptRelease]:
        for path in self._folder.glob(pattern):
            with suppress(OSError, ValidationError):
                yield KeptRelease.model_validate_json(path.read_bytes())


def asked_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON without where the rows are, which `party.toml` knows."""
    return {key: value for key, value in spec.items() if key not in OF_SOURCE and key != "engine"}
