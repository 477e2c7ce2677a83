"""The values of a simulated collection, from text files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jobs.report.text import visible
from ldp.domain import Codes, Domain
from link.errors import InputDataError
from mining.data.formats.text_files import read_text

_SHOWN: Final = 40  # characters of a value in an error


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """The users' values.

    Attributes:
        domain: All values that a user could have.
        codes: Shape (n,): the number of each user's value.
        public: Whether the domain was given; otherwise it is what was seen, which no real collection knows.
    """

    domain: Domain
    codes: Codes
    public: bool

    @property
    def counts(self) -> NDArray[np.int64]:
        """Shape (d,): how many users have each value."""
        return np.bincount(self.codes, minlength=self.domain.size)


def load_collection(values: Path, domain: Path | None = None) -> Collection:
    """Reads one value a line, byte for byte but for the line's end (LF or CR LF); UTF-8, perhaps compressed with gzip.

    Args:
        values: The file of the users' values.
        domain: The file of all values, each once; without it the domain is what `values` holds, in order of its UTF-8
            bytes.

    Raises:
        InputDataError: A file cannot be read, is empty, or holds a value that the domain has not, or the domain twice.
        ConfigurationError: The domain has fewer than two values, or too many.
    """
    found = lines(values)
    if domain is None:
        # The order of code points is the order of UTF-8 bytes.
        labels = sorted(set(found))
        if len(labels) < 2:
            raise InputDataError(f"all lines of {values} hold the same value; name the file of a domain")
    else:
        labels = lines(domain)
    places = {label: code for code, label in enumerate(labels)}
    if domain is not None and len(places) < len(labels):
        twice = next(line for line, label in enumerate(labels) if places[label] != line)
        raise InputDataError(f"line {twice + 1} of {domain} names {_quoted(labels[twice])}, which comes again")
    known = Domain(len(labels), labels)
    codes = np.fromiter((places.get(line, -1) for line in found), np.int64, len(found))
    if codes.min() < 0:
        first = int(np.argmin(codes))
        raise InputDataError(
            f"line {first + 1} of {values} holds {_quoted(found[first])}, which is not in the domain of {domain}; "
            "add it there or leave the line out"
        )
    return Collection(known, codes, domain is not None)


def lines(path: Path) -> list[str]:
    """The values of a file, one a line.

    Raises:
        InputDataError: It cannot be read, or is empty.
    """
    if not path.exists():
        raise InputDataError(f"there is no file {path}; name one with one value a line")
    text = read_text(path, other=False).decode("utf-8")
    if not text:
        raise InputDataError(f"{path} is empty; it needs one value a line")
    found = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in found] if "\r\n" in text else found


def _quoted(value: str) -> str:
    return f"'{visible(value[:_SHOWN])}{'…' if len(value) > _SHOWN else ''}'"
