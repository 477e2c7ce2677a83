"""Files at a URL: `https://HOST/PATH`."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import IO, BinaryIO, Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from link.errors import InputDataError
from mining.data.schemes.scheme import StoredFile, StoreScheme, is_loopback
from mining.data.source_options import SourceOptions

_PATIENCE_S: Final = 30  # for the next bytes
_FRESH_S: Final = 2  # a time of change counts whole seconds
_WHERE: Final = "The source at a URL cannot be read"
_ELSEWHERE: Final = "redirected to where others could read the data"


class Http(StoreScheme):
    """One file; whoever has a password and a user logs in by them, and without a user by it alone, as a token."""

    prefixes = ("https://", "http://")
    form = "https://HOST/PATH"
    has_password = True

    def fault(self, source: str) -> str:
        """Also a connection that anybody under way could read."""
        if fault := super().fault(source):
            return fault
        if source.startswith("http://") and not is_loopback(urlsplit(source).netloc.rpartition("@")[2]):
            return "begins with http://, by which others could read and change the data under way; take https://"
        return ""

    def place(self, source: str) -> str:
        """All but the user."""
        found = urlsplit(source)
        return found._replace(netloc=found.netloc.rpartition("@")[2].lower()).geturl()

    def files(self, source: str, options: SourceOptions) -> list[StoredFile]:
        """See `StoreScheme.files`."""
        with _told(), _answer(source, "HEAD", options) as answer:
            return [_stored(source, answer.headers)]

    @contextmanager
    def opened(self, _file: StoredFile, source: str, options: SourceOptions) -> Iterator[BinaryIO]:
        """See `StoreScheme.opened`."""
        with _told(), _answer(source, "GET", options) as answer:
            yield cast(BinaryIO, answer)


class _Redirects(HTTPRedirectHandler):
    """Follows to no place where the data could be read under way."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        """As its base."""
        if Http().fault(newurl):
            fp.close()
            raise URLError(_ELSEWHERE)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


@contextmanager
def _answer(source: str, method: str, options: SourceOptions) -> Iterator[HTTPResponse]:
    found = urlsplit(source)
    user, _, host = found.netloc.rpartition("@")
    request = Request(found._replace(netloc=host, fragment="").geturl(), method=method)  # noqa: S310 - see `fault`
    request.add_header("Accept-Encoding", "identity")
    if (word := options.password()) is not None:
        pair = base64.b64encode(f"{unquote(user)}:{word}".encode()).decode()
        # Not sent to where the answer leads.
        request.add_unredirected_header("Authorization", f"Basic {pair}" if user else f"Bearer {word}")
    with build_opener(_Redirects).open(request, timeout=_PATIENCE_S) as answer:
        yield answer


def _stored(source: str, heads: Message) -> StoredFile:
    found = urlsplit(source)
    shown = found._replace(netloc=found.netloc.rpartition("@")[2], query="", fragment="").geturl()
    size = int(heads.get("Content-Length") or 0)
    tag, changed = heads.get("ETag"), heads.get("Last-Modified")
    if tag is None and changed is None:
        return StoredFile(shown, source, size, (time.time_ns(),))  # it may be another every time
    fresh = tag is None and changed is not None and time.time() - _seconds(changed) < _FRESH_S
    return StoredFile(shown, source, size, (source, tag, changed, size), fresh)


def _seconds(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return time.time()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise InputDataError(
                f"{_WHERE}: the server refuses the access ({error.code}); name a password by password_env or "
                "password_file, and check it and the user."
            ) from None
        raise InputDataError(f"{_WHERE}: the server answers {error.code}; check the path.") from None
    except URLError as error:
        raise InputDataError(f"{_WHERE}: {_reason(str(error.reason))}.") from None
    except (OSError, HTTPException, ValueError):
        raise InputDataError(f"{_WHERE}: the connection broke, or the answer is no HTTP; try it again.") from None


def _reason(reason: str) -> str:
    """Why there is no answer, without the host."""
    if "CERTIFICATE" in reason:
        return "the server's certificate is not trusted here; set SSL_CERT_FILE to that of its authority"
    if reason == _ELSEWHERE:
        return f"it is {_ELSEWHERE}; name the https:// URL of the file itself"
    return "nobody answers there; check host and port"
