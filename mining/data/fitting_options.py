"""Whether what is said of a source beside its place fits the source, before anything is read."""

from __future__ import annotations

from mining.data.formats.workbooks import is_workbook
from mining.data.schemes.registry import scheme_of
from mining.data.source_options import TWO_PASSWORDS, UNKNOWN_ENCODING, is_encoding


def misfit(
    source: str,
    form: str,
    *,
    encoding: str | None,
    sheet: str | None,
    has_password_env: bool,
    has_password_file: bool,
) -> str:
    """What does not fit, as a clause that holds no value; empty where all does.

    Args:
        source: A file or a URL.
        form: The format of what is in it.
        encoding: Of text.
        sheet: Of a workbook.
        has_password_env: Whether an environment variable with a password is named.
        has_password_file: Whether a file with a password is named.
    """
    if encoding is not None and (form in ("parquet", "sql") or is_workbook(source)):
        return "encoding is for text files; leave it out"
    if encoding is not None and not is_encoding(encoding):
        return UNKNOWN_ENCODING
    if sheet is not None and not is_workbook(source):
        return "sheet is for workbooks such as sales.xlsx; leave it out"
    if is_workbook(source) and form not in ("csv", "long", "wide"):
        return 'a sheet of a workbook is read with format = "csv", "long" or "wide"'
    if has_password_env and has_password_file:
        return TWO_PASSWORDS
    scheme = scheme_of(source)
    if (has_password_env or has_password_file) and (scheme is None or not scheme.has_password):
        return "password_env and password_file mean nothing to this source; leave them out"
    return ""
