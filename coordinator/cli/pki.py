"""`comine pki …`: the certificate authority of a federation."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import AsJson

if TYPE_CHECKING:
    from link.pki.issued import Issued

app = typer.Typer(help="Certificates of a federation.", no_args_is_help=True)

_Out = Annotated[Path, typer.Option("--out", help="Folder of the authority.")]
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
def issue(
    name: Annotated[str, typer.Argument(help="Name of the party, coordinator or client.")],
    host: Annotated[
        list[str] | None, typer.Option("--host", help="A host name or address of the node; may be repeated.")
    ] = None,
    role: Annotated[str, typer.Option("--role", help="party, coordinator or client.")] = "party",
    out: _Out = Path("pki"),
    force: _Force = False,
) -> None:
    """Issue a certificate and a key for a party, coordinator or client; --force renews what is there."""
    from coordinator.cli.terminal.console import note
    from link.errors import UsageError
    from link.pki.authority import Authority, write_identity
    from link.pki.identity import ROLES
    from link.pki.issued import check_hosts, is_revoked

    roles = {known: known for known in ROLES}
    if role not in roles:
        raise UsageError(f"--role is {', '.join(ROLES[:-1])} or {ROLES[-1]}, not '{role}'")
    authority = Authority.read(out)
    if role == "party":
        check_hosts(out, name, host or ())
    identity = authority.issue(name, roles[role], host or ())
    write_identity(identity, out, force=force or is_revoked(out, name))
    note(f"created {out / f'{name}.crt'} and {out / f'{name}.key'}")


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
        note(f"should {name} take part again, give it a new certificate with: comine pki issue {name} --out {out}")


@app.command()
def show(out: _Out = Path("pki"), as_json: AsJson = False) -> None:
    """List the certificates of an authority, until when they are valid and which are revoked or replaced."""
    from coordinator.cli.terminal.console import write_json, write_table
    from link.pki.issued import show as certificates

    found = certificates(out)
    if as_json:
        write_json(
            {
                "schema": "comine.pki/1",
                "certificates": [
                    {
                        "name": issued.name,
                        "role": issued.role,
                        "hosts": list(issued.hosts),
                        "serial": issued.serial,
                        "fingerprint": issued.fingerprint,
                        "valid_until": issued.valid_until.isoformat(),
                        "current": issued.current,
                        "revoked": issued.revoked.isoformat() if issued.revoked else None,
                    }
                    for issued in found
                ],
            }
        )
        return
    write_table(
        ["name", "role", "hosts", "state", "serial", "SHA-256"],
        [[c.name, c.role, " ".join(c.hosts), _state(c), c.serial[:16], c.fingerprint] for c in found],
    )


def _state(issued: Issued) -> str:
    if issued.revoked is not None:
        return f"revoked {issued.revoked:%Y-%m-%d}"
    if issued.valid_until < dt.datetime.now(dt.UTC):
        return f"expired {issued.valid_until:%Y-%m-%d}"
    return f"{'valid' if issued.current else 'replaced, valid'} until {issued.valid_until:%Y-%m-%d}"
