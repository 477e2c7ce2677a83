"""The specification of a collection of the frequency service: a frozen model of `collection.toml`.

The creator of a collection sends it in canonical form, the labels of the domain apart from it. Clients read it again,
and see from it when rounds begin and end.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from pydantic import PrivateAttr, model_validator

from jobs.collections.mechanism import check_mechanism
from jobs.collections.tables import CollectionTables
from jobs.spec.toml import read_toml, validate
from ldp.domain import Domain
from link.errors import ConfigurationError
from link.files.json_text import read_json
from link.files.printable import why_not_read

MAX_SPEC_BYTES: Final = 1 << 20
MAX_LABEL: Final = 1 << 12  # characters of one value of the domain
MAX_LABEL_BYTES: Final = 64 << 20  # of all values
_SHOWN: Final = 40  # characters of a label in an error


class CollectionSpec(CollectionTables):
    """The whole of `collection.toml`."""

    _sums: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _has_mechanism(self) -> CollectionSpec:
        if self.collection.domain is not None:
            return self  # its size is not known yet
        try:
            self._sums = check_mechanism(self)
        except ConfigurationError as error:
            table = "" if error.message.startswith("[") else "[collection] "
            raise ValueError(f"{table}{error.message}") from None
        return self

    @classmethod
    def load(cls, path: Path) -> tuple[CollectionSpec, bytes]:
        """Reads a collection's file, and the file of its domain.

        Returns:
            The specification, and the domain's labels as `labels_of` writes them; empty where there are none.

        Raises:
            ConfigurationError: Something in the files is missing, unknown or wrong.
        """
        spec = validate(cls, read_toml(path), str(path))
        name = spec.collection.domain
        if name is None:
            return spec, b""
        labels = _read_labels(path.parent / name)
        section = {**spec.collection.model_dump(), "domain": None, "size": len(labels), "labelled": True}
        return validate(cls, {**spec.model_dump(), "collection": section}, str(path)), labels_of(labels)

    @classmethod
    def from_canonical(cls, data: bytes) -> CollectionSpec:
        """Reads a specification that crossed the wire.

        Raises:
            ConfigurationError: It is wrong, or not in canonical form.
        """
        if len(data) > MAX_SPEC_BYTES:
            raise ConfigurationError(f"the collection's specification is longer than {MAX_SPEC_BYTES >> 20} MiB")
        try:
            contents = read_json(data)
        except (ValueError, RecursionError):
            raise ConfigurationError("the collection's specification is not JSON") from None
        spec = validate(cls, contents, "the collection's specification")
        if spec.collection.domain is not None:
            raise ConfigurationError("the collection's specification names a file; send the domain's labels instead")
        if spec.canonical() != data:
            raise ConfigurationError(
                "the collection's specification is not in canonical form; bring both ends to the same version"
            )
        return spec

    def canonical(self) -> bytes:
        """The specification as JSON, keys sorted, no blanks; decimals are strings, so that none is rounded.

        Tables that few collections have are left out where they are absent: collections that were created before there
        were such tables keep their form.
        """
        plain = self.model_dump(mode="json")
        for name in ("budget", "sampling", "memo"):
            if plain[name] is None:
                del plain[name]
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def sums(self) -> int:
        """How many sums an open round keeps, at the most."""
        return self._sums

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.collection.name

    def domain(self, labels: bytes) -> Domain | None:
        """The domain, from the specification and its labels; None where there is none that is known.

        Raises:
            ConfigurationError: The labels are not as many as the specification says, or wrong.
        """
        size = self.collection.size
        if not self.collection.labelled:
            if labels:
                raise ConfigurationError(
                    f"the collection '{self.name}' has no labelled domain, but labels came with it"
                )
            return None if size is None else Domain(size)
        texts = texts_of(labels)
        if len(texts) != size:
            raise ConfigurationError(
                f"the domain of the collection '{self.name}' has {size:,} values, but {len(texts):,} labels came"
            )
        return Domain(size, texts)


def labels_of(texts: list[str] | tuple[str, ...]) -> bytes:
    """Labels as UTF-8 lines, each with its end."""
    return "".join(f"{text}\n" for text in texts).encode()


def texts_of(labels: bytes) -> list[str]:
    """The labels that `labels_of` wrote.

    Raises:
        ConfigurationError: They are not UTF-8 lines, one is empty or too long, or all together are.
    """
    if len(labels) > MAX_LABEL_BYTES:
        raise ConfigurationError(
            f"the domain's labels take {len(labels):,} bytes, more than {MAX_LABEL_BYTES >> 20} MiB; collect numbers "
            "(size = …) and keep the labels, or shorten them"
        )
    try:
        text = labels.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError("the domain's labels are not UTF-8 text") from None
    if text and not text.endswith("\n"):
        raise ConfigurationError("the last of the domain's labels is cut; every line needs its end")
    found = text.removesuffix("\n").split("\n") if text else []
    for line, label in enumerate(found, start=1):
        if not label:
            raise ConfigurationError(f"line {line} of the domain is empty; every line names a value")
        if len(label) > MAX_LABEL:
            raise ConfigurationError(f"line {line} of the domain is longer than {MAX_LABEL:,} characters")
    return found


def digest_of(labels: bytes) -> bytes:
    """SHA-256 of the labels; empty where there are none."""
    return hashlib.sha256(labels).digest() if labels else b""


def _read_labels(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the domain {path} cannot be read: {why_not_read(error)}") from None
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    try:
        found = texts_of(data if data.endswith(b"\n") or not data else data + b"\n")
        if len(set(found)) < len(found):
            raise ConfigurationError(_twice(found))
        Domain.of(found)  # refuses too few values, or too many
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error.message}") from None
    return found


def _twice(labels: list[str]) -> str:
    first: dict[str, int] = {}
    line, label = next(
        (line, label) for line, label in enumerate(labels, start=1) if first.setdefault(label, line) != line
    )
    shown = f"{label[:_SHOWN]}…" if len(label) > _SHOWN else label
    return f"line {line} names {shown!r}, as line {first[label]} does; name each value once"
