"""Where the things lie that an audit reads: logs, result folders, evidence, and the authority to check them with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.results.destination import MANIFEST
from jobs.spec.toml import read_toml
from link.errors import ConfigurationError, UsageError
from link.pki.certificates import may_issue, read_certificate
from link.pki.trust import Trust

LOG_NAME: Final = "audit.log"  # in a party's state_dir
RESULT: Final = "result.json"  # in a result folder
EVIDENCE: Final = ".json"  # at the end of the name of a file of evidence


@dataclass(frozen=True, slots=True)
class Places:
    """What the paths on a command line mean.

    Attributes:
        logs: Audit logs.
        results: Result folders.
        evidence: Files of evidence.
        ca: The certificate of the authority that a party's file names, where there was one.
        crl: Its list of revoked certificates, where the party's file names one.
    """

    logs: tuple[Path, ...]
    results: tuple[Path, ...]
    evidence: tuple[Path, ...]
    ca: Path | None
    crl: Path | None


def find(paths: list[Path]) -> Places:
    """Sorts paths into logs, parties' files and result folders.

    Args:
        paths: Audit logs, `party.toml` files, state folders, result folders and files of evidence.

    Raises:
        ConfigurationError: A path is none of these.
    """
    logs, results, evidence = [], [], []
    ca = crl = None
    for path in paths:
        if path.suffix == ".toml":
            log, own_ca, own_crl = of_party(path)
            logs.append(log)
            ca, crl = ca or own_ca, crl or own_crl
        elif path.suffix == EVIDENCE and path.is_file():
            evidence.append(path)
        elif (path / RESULT).is_file() or (path / MANIFEST).is_file():
            results.append(path)
        elif (path / LOG_NAME).is_file():
            logs.append(path / LOG_NAME)
        elif path.is_file():
            logs.append(path)
        else:
            raise ConfigurationError(
                f"{path} is no audit log, no party's file, no result folder and no evidence; check the path (a node's "
                f"log is {LOG_NAME} in its state_dir)"
            )
    return Places(tuple(logs), tuple(results), tuple(evidence), ca, crl)


def of_party(path: Path) -> tuple[Path, Path, Path | None]:
    """The audit log of a party's file, and the authority and the list of revoked certificates that the file names.

    Raises:
        ConfigurationError: The file cannot be read, or is not a party's.
    """
    contents: dict[str, Any] = read_toml(path)
    try:
        state, tls = contents["party"]["state_dir"], contents["tls"]
        crl = tls.get("crl")
        return path.parent / state / LOG_NAME, path.parent / tls["ca"], None if crl is None else path.parent / crl
    except (KeyError, TypeError, AttributeError):
        raise ConfigurationError(f"{path} is not a party's file: it needs [party] state_dir and [tls] ca") from None


def trust_in(ca: Path | None, crl: Path | None) -> Trust:
    """Trust in an authority, for records of any age.

    Args:
        ca: Its certificate.
        crl: Its list of revoked certificates; by default `ca.crl` beside the certificate, where that exists.

    Raises:
        UsageError: No authority is given.
        ConfigurationError: A file cannot be read, or the first is no authority's certificate.
        IdentityError: The list is not this authority's.
    """
    if ca is None:
        raise UsageError("give the authority's certificate with --ca ca.crt, or the party.toml file of a party")
    try:
        pem = ca.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{ca} cannot be read ({error.strerror}); give the authority's ca.crt") from None
    try:
        issues = may_issue(read_certificate(pem))
    except ValueError:
        issues = False
    if not issues:  # else all who have signed would be found to have lied
        raise ConfigurationError(f"{ca} is not the certificate of an authority; give the authority's ca.crt")
    return Trust.load(pem, ca, crl)
