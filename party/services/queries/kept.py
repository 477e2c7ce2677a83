"""Files of auditors of sums: to replay many answers after a start would take hours, to read a file takes seconds.

A file belongs to the decisions up to a number; later ones are replayed. Where it is missing or damaged, all are.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final

from anonymize.auditing.sums import SumAuditor
from link.errors import InputDataError, ResourceError
from link.files.private_file import replace_private
from party.services.queries.log import AuditorRow

_HEADER: Final = struct.Struct("<16sq")


class KeptAuditors:
    """Files in a folder, readable by their owner alone.

    Args:
        folder: Theirs; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, row: AuditorRow, number: int, auditor: SumAuditor) -> None:
        """Keeps an auditor; it is on disk, whole, when this returns.

        Args:
            row: Which one.
            number: Of the last decision that it knows.
            auditor: It.

        Raises:
            ResourceError: The disk refuses it; the file of before is still there.
        """
        path = self._path(row)

        def fill(file: BinaryIO) -> None:
            file.write(_HEADER.pack(row.id, number))
            auditor.write(file)

        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_private(path, fill)
        except OSError as error:
            raise ResourceError(f"{path.name} cannot be written ({error.strerror}); see to the disk") from None

    def read(self, row: AuditorRow) -> tuple[int, SumAuditor] | None:
        """The number of the last decision that a kept auditor knows, and it; None where there is no good file."""
        try:
            with self._path(row).open("rb") as file:
                header = file.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    return None
                identity, number = _HEADER.unpack(header)
                return (number, SumAuditor.read(file)) if identity == row.id else None
        except (OSError, InputDataError):
            return None

    def _path(self, row: AuditorRow) -> Path:
        return self._folder / f"{row.row}.auditor"
