"""The certificate and the key that a server shows, from files: what is wrong with them is said of the file it is in."""

from __future__ import annotations

import ssl
from pathlib import Path

from link.errors import ConfigurationError
from link.files.printable import why_not_read
from link.pki.certificates import read_certificate, read_key


def load_pair(context: ssl.SSLContext, certificate: Path, key: Path, table: str) -> None:
    """Has a server show a certificate, with those between it and the authority, and sign by its key.

    OpenSSL alone would name neither file, and ask the terminal for the password of a key that has one.

    Args:
        context: Of the server.
        certificate: PEM file.
        key: PEM file.
        table: In which the keys `certificate` and `key` name them.

    Raises:
        ConfigurationError: A file cannot be read, is something else, or the two are no pair.
    """
    try:
        read_certificate(_read(certificate, f"{table} certificate"))
    except ValueError:
        raise ConfigurationError(
            f"{certificate} is not a certificate in PEM form; correct {table} certificate or write the file anew"
        ) from None
    try:
        read_key(_read(key, f"{table} key"))
    except ValueError:
        raise ConfigurationError(
            f"{key} is not an unencrypted private key in PEM form; correct {table} key or write the file anew"
        ) from None
    try:
        context.load_cert_chain(certificate, key)
    except OSError:
        raise ConfigurationError(
            f"{key} is not the key of {certificate}, or a further certificate in the latter cannot be read; correct "
            f"{table} certificate and key, or write both files anew"
        ) from None


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read ({why_not_read(error)}); check {setting}") from None
