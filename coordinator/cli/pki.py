"""`comine pki …`: the certificate authority of a federation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.terminal.completion import words

if TYPE_CHECKING:
    from link.pki.identity import Role
    from link.pki.issued import Issued
    from link.pki.signing import Judged

app = typer.Typer(help="Certificates of a federation.", no_args_is_help=True)

_Out = Annotated[Path, typer.Option("--out", help="Folder of the authority.")]
_Name = Annotated[str, typer.Argument(help="Name of the party, coordinator or client.")]
_Hosts = Annotated[
    list[str] | None, typer.Option("--host", help="A host name or address of the node; may be repeated.")
]
_AsRole = Annotated[
    str | None,
    typer.Option(
        "--role",
        help="party, coordinator or client.",
        show_default="party",
        autocompletion=words("party", "coordinator", "client"),
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@app.callback()
def pki() -> None:
    """Certificates of a federation."""


@app.command()
def init(out: _Out = Path("pki"), force: _Force = False) -> None:
    """Create a certificate authority: ca.crt for everybody, ca.key for nobody else."""
    from coordinator.cli.terminal.console import note
    from link.pki.authority import Authority

    Authority.create().write(out, force=force)
    note(f"created {out / 'ca.crt'}; keep {out / 'ca.key'} secret, and off the parties' machines")


@app.command()
def request(
    name: _Name,
    host: _Hosts = None,
    role: _AsRole = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Ask for another certificate of the key that is there.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of the key.")] = Path("pki"),
    force: Annotated[
        bool, typer.Option("--force", help="Make a new key; the one so far stays until its certificate.")
    ] = False,
) -> None:
    """At a member: make a key, which stays here, and a request that the authority signs.

    Where there is a certificate already, its hosts and role are asked for again.
    """
    from coordinator.cli.terminal.console import note
    from link.errors import ConfigurationError
    from link.pki.authority import new_key, write_request
    from link.pki.identity import NEW, check_name
    from link.pki.issued import describe
    from link.pki.requests import make_request, read_request

    check_name(name)
    key, asked = out / f"{name}.key", _role(role or "party")
    hosts: Sequence[str] = host or ()
    if key.exists() and not (renew or force):
        raise ConfigurationError(
            f"{key} exists; use --renew to ask for another certificate of it, or --force to make another key"
        )
    if key.exists() and (out / f"{name}.crt").is_file():
        before = describe(out / f"{name}.crt")
        hosts, asked = host or before.hosts, _role(role or before.role)
    made = key.with_name(key.name + NEW) if key.exists() else key
    key_pem = key.read_bytes() if renew else new_key()
    pem = make_request(key_pem, name, asked, hosts)
    path = write_request(out, name, pem, None if renew else key_pem)
    note(f"created {path}{'' if renew else f' and {made}, which must not leave this machine'}")
    note(f"the key has the SHA-256 fingerprint {read_request(path).fingerprint}")
    note(f"next: bring {path} to the authority, which signs it with: comine pki sign {path.name}")
    if renew or made != key:
        note(f"      what comes back is installed with: comine pki install {name} {name}.crt --out {out}")
    else:
        note(f"      put the {name}.crt and ca.crt that come back into {out}")


@app.command()
def install(
    name: _Name,
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="What the authority has sent.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the key.")] = Path("pki"),
) -> None:
    """At a member: put a renewed certificate, and the key that was made for it, in the place of those so far."""
    from coordinator.cli.terminal.console import note
    from link.pki.identity import check_name
    from link.pki.installing import install as put

    check_name(name)
    note(f"installed {put(out, certificate, name)}; a node that runs takes it up with: comine party reload")


@app.command()
def sign(
    csr: Annotated[Path, typer.Argument(metavar="REQUEST", help="What comine pki request has made.")],
    federation: Annotated[
        Path | None,
        typer.Option("--federation", envvar="COMINE_FEDERATION", help="A federation file, which lists all parties."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    out: _Out = Path("pki"),
    force: Annotated[
        bool, typer.Option("--force", help="Sign also where the member's certificate so far has another key.")
    ] = False,
) -> None:
    """At the authority: show who asks for what, and sign the request; its key is not here."""
    import sys

    from coordinator.cli.terminal.console import note
    from coordinator.member import read_federation
    from link.errors import JobCancelled
    from link.pki import signing
    from link.pki.requests import read_request

    asked = read_request(csr)
    judged = signing.judge(out, asked, None if federation is None else read_federation(federation).addresses)
    hosts = f", reached at {' '.join(asked.hosts)}" if asked.hosts else ""
    note(f"{asked.name} asks to be a {asked.role}{hosts}")
    note(f"the key has the SHA-256 fingerprint {asked.fingerprint}: {_key_state(judged)}")
    if not yes and sys.stdin.isatty() and not typer.confirm(f"sign it for {asked.name}?", err=True):
        raise JobCancelled("nothing was signed")
    path = signing.sign(out, judged, force=force)
    note(f"created {path}; send it back with {out / 'ca.crt'}, neither of which is secret")


@app.command()
def issue(
    name: _Name,
    host: _Hosts = None,
    role: _AsRole = None,
    out: _Out = Path("pki"),
    force: _Force = False,
) -> None:
    """For trials: issue a certificate with its key, which the authority then knows; --force renews what is there.

    Real members make their keys themselves: comine pki request, and comine pki sign.
    """
    from coordinator.cli.terminal.console import note
    from link.pki.authority import Authority, write_identity
    from link.pki.issued import check_hosts, is_revoked

    asked, authority = _role(role or "party"), Authority.read(out)
    if asked == "party":
        check_hosts(out, name, host or ())
    identity = authority.issue(name, asked, host or ())
    write_identity(identity, out, force=force or is_revoked(out, name))
    note(f"created {out / f'{name}.crt'} and {out / f'{name}.key'}")
    note(f"this is for trials: the authority has the key of {name}, too; otherwise use comine pki request and sign")


@app.command()
def revoke(
    name: Annotated[
        str | None, typer.Argument(help="Name of the holder; without one the list is only renewed.")
    ] = None,
    serial: Annotated[
        str, typer.Option("--serial", help="Only the certificate whose serial number begins with these digits.")
    ] = "",
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="The certificate in this file, which --out may not hold.")
    ] = None,
    out: _Out = Path("pki"),
) -> None:
    """Revoke all certificates of a holder, or one; writes ca.crl, which belongs beside every ca.crt."""
    from coordinator.cli.terminal.console import note
    from link.errors import UsageError
    from link.pki.authority import CRL, Authority
    from link.pki.issued import revoke as take_back

    if name is None:
        if serial or certificate:
            raise UsageError("--serial and --certificate say which certificate of NAME is meant; give NAME too")
        number = Authority.read(out).revoke(out, ())
        note(f"renewed {out / CRL}, list number {number}; copy it to every party and the coordinator")
        return
    done = take_back(out, name, serial=serial, certificate=certificate)
    for issued in done.before:
        note(
            f"the certificate {issued.serial[:16]} of {name} was revoked before, on {issued.revoked:%Y-%m-%d %H:%M} UTC"
        )
    for issued in done.revoked:
        note(f"revoked the certificate {issued.serial[:16]} of {name}")
    if done.revoked:
        note(f"wrote {out / CRL}, list number {done.number}; copy it to every party and the coordinator")
        note(f"should {name} take part again, have it ask with: comine pki request {name} --force")


@app.command()
def show(out: _Out = Path("pki"), as_json: AsJson = False) -> None:
    """List the certificates of an authority, until when they are valid and which are revoked or replaced."""
    from coordinator.cli.terminal.console import write_json, write_table
    from link.pki.issued import show as certificates

    found = certificates(out)
    if as_json:
        write_json({"schema": "comine.pki/1", "certificates": [issued.as_data() for issued in found]})
        return
    write_table(
        ["name", "role", "hosts", "state", "serial", "SHA-256"],
        [[c.name, c.role, " ".join(c.hosts), _state(c), c.serial[:16], c.fingerprint] for c in found],
    )


def _role(role: str) -> Role:
    from link.errors import UsageError
    from link.files.printable import enumeration
    from link.pki.identity import ROLES

    for known in ROLES:
        if role == known:
            return known
    raise UsageError(f"--role is {enumeration(ROLES, 'or')}, not '{role}'")


def _key_state(judged: Judged) -> str:
    if judged.same_key:
        return "it is that of the certificate so far"
    if judged.before is not None:
        return f"ANOTHER than that of the certificate so far, {judged.before.serial[:16]}; compare it by telephone"
    return "compare it by telephone"


def _state(issued: Issued) -> str:
    if issued.revoked is not None:
        return f"revoked {issued.revoked:%Y-%m-%d}"
    if issued.valid_until < dt.datetime.now(dt.UTC):
        return f"expired {issued.valid_until:%Y-%m-%d}"
    return f"{'valid' if issued.current else 'replaced, valid'} until {issued.valid_until:%Y-%m-%d}"
