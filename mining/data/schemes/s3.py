"""S3 and stores that speak as it does: `s3://BUCKET/KEY`, where the key may be a pattern or a folder."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from link.errors import InputDataError
from mining.data.schemes.scheme import StoredFile, StoreScheme, is_loopback
from mining.data.source_options import SourceOptions

_KNOWN: Final = ("anonymous", "endpoint_override", "region", "scheme")  # what may follow the ?
_PATIENCE_S: Final = 20
_ATTEMPTS: Final = 3
_FRESH_NS: Final = 2_000_000_000  # a time of change counts whole seconds
_REFUSALS: Final = (  # what Amazon's library says, which names hosts, buckets and keys, and what is said instead
    (
        ("ACCESS_DENIED", "code 403", "code 401", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH"),
        "it refuses the access; check AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they allow",
    ),
    (("NO_SUCH_BUCKET", "NO_SUCH_KEY", "code 404"), "it has no such bucket or key; check the source"),
    (("NETWORK_CONNECTION", "curlCode"), "nobody answers there; check endpoint_override, region and the network"),
)


class S3(StoreScheme):
    """Through Arrow's file system, which finds credentials as Amazon's tools do: variables, a profile, a role."""

    prefixes = ("s3://",)
    form = "s3://BUCKET/KEY"

    def fault(self, source: str) -> str:
        """Also a key in the place of a user, and what is not known behind the `?`."""
        found = urlsplit(source)
        if "@" in found.netloc:
            return "holds an access key; take it out, and set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
        given = dict(parse_qsl(found.query))
        if given.keys() - set(_KNOWN):
            return f"has something unknown behind its ?; there are {', '.join(_KNOWN)}"
        if given.get("scheme") == "http" and not is_loopback(given.get("endpoint_override", "")):
            return "has scheme=http, by which others could read and change the data under way; take https"
        return ""

    def place(self, source: str) -> str:
        """The key in its bucket; both distinguish capitals."""
        return source.partition("?")[0]

    def files(self, source: str, _options: SourceOptions) -> list[StoredFile]:
        """See `StoreScheme.files`; a key that ends in `/` stands for all Parquet files below it."""
        path = source.partition("?")[0].removeprefix("s3://")
        if path.endswith("/"):
            path += "**/*.parquet"
        begin, star, _ = path.partition("*")
        with _told():
            store = _store(source)
            if not star:
                found = [store.get_file_info(path)]
            else:
                below = fs.FileSelector(begin.rpartition("/")[0], recursive=True, allow_not_found=True)
                pattern = re.escape(path).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
                found = [each for each in store.get_file_info(below) if re.fullmatch(pattern, each.path)]
        return [_stored(each) for each in sorted(found, key=lambda each: each.path) if each.type == fs.FileType.File]

    @contextmanager
    def opened(self, file: StoredFile, source: str, _options: SourceOptions) -> Iterator[BinaryIO]:
        """See `StoreScheme.opened`."""
        with _told(), _store(source).open_input_stream(file.place, compression=None) as stream:
            yield cast(BinaryIO, stream)


def _store(source: str) -> fs.S3FileSystem:
    given: dict[str, Any] = dict(parse_qsl(source.partition("?")[2]))
    given["anonymous"] = given.get("anonymous") == "true"
    given["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(connect_timeout=_PATIENCE_S, request_timeout=_PATIENCE_S, **given)


def _stored(found: fs.FileInfo) -> StoredFile:
    changed = found.mtime_ns or 0
    marks = (found.path, found.size, changed)
    return StoredFile(f"s3://{found.path}", found.path, found.size or 0, marks, time.time_ns() - changed < _FRESH_NS)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = str(error)
        said = next((words for signs, words in _REFUSALS if any(sign in reason for sign in signs)), None)
        raise InputDataError(
            f"the S3 source cannot be read: {said or 'check bucket, key, region and credentials'}."
        ) from None
