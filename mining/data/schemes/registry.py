"""The schemes of sources, each known by its prefixes; a source that begins with none of them is a file.

Other distributions bring schemes as entry points of the group `comine.sources`, by the word before `://`.
"""

from __future__ import annotations

import re
from typing import Final

from link.errors import ConfigurationError
from link.files.printable import enumeration
from link.plugins import load_class
from mining.data.schemes.duckdb_file import DuckDb
from mining.data.schemes.http import Http
from mining.data.schemes.mysql import MySql
from mining.data.schemes.postgres import Postgres
from mining.data.schemes.s3 import S3
from mining.data.schemes.scheme import DatabaseScheme, Scheme
from mining.data.schemes.sqlite import Sqlite

GROUP: Final = "comine.sources"
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OWN: Final[tuple[Scheme, ...]] = (Sqlite(), DuckDb(), Postgres(), MySql(), S3(), Http())
"""The schemes of comine itself; their prefixes are nobody else's."""


def scheme_of(source: str) -> Scheme | None:
    """The scheme of a source; None where it is a file.

    Raises:
        ConfigurationError: What another distribution brings for it cannot be used.
    """
    own = next((scheme for scheme in OWN if source.startswith(scheme.prefixes)), None)
    word, found, _ = source.partition("://")
    if own is not None or not found:
        return own
    brought = load_class(GROUP, word, Scheme)
    return None if brought is None else brought()


def unread(source: str) -> str:
    """Why a source cannot be read here, as a clause that does not repeat it; empty where it is a file, or can be."""
    scheme = scheme_of(source)
    if scheme is not None:
        return scheme.fault(source)
    if _WORD.match(source) is None:
        return ""
    return f"begins with a scheme that is not read here; there are files, {', '.join(each.form for each in OWN)}"


def database_of(source: str) -> DatabaseScheme:
    """The database that a source is.

    Raises:
        ConfigurationError: It is none.
    """
    scheme = scheme_of(source)
    if not isinstance(scheme, DatabaseScheme):
        raise ConfigurationError(f"The source of a dataset of format sql must be a URL {database_forms()}.")
    return scheme


def database_forms() -> str:
    """How URLs of databases are written, for people."""
    return enumeration([scheme.form for scheme in OWN if isinstance(scheme, DatabaseScheme)], "or")
