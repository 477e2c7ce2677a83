"""`comine pki …`: the certificate authority of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Certificates of a federation.", no_args_is_help=True)

_Out = Annotated[Path, typer.Option("--out", help="Folder of the authority.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@app.callback()
def pki() -> None:
    """Certificates of a federation."""


@app.command()
def init(out: _Out = Path("pki"), force: _Force = False) -> None:
    """Create a certificate authority: ca.crt for everybody, ca.key for nobody else."""
    from coordinator.cli.console import note
    from link.authority import Authority

    Authority.create().write(out, force=force)
    note(f"created {out / 'ca.crt'}; keep {out / 'ca.key'} secret, and off the parties' machines")


@app.command()
def issue(
    name: Annotated[str, typer.Argument(help="Name of the party or coordinator.")],
    host: Annotated[
        list[str] | None, typer.Option("--host", help="A host name or address of the node; may be repeated.")
    ] = None,
    role: Annotated[str, typer.Option("--role", help="party or coordinator.")] = "party",
    out: _Out = Path("pki"),
    force: _Force = False,
) -> None:
    """Issue a certificate and a key for a party or a coordinator."""
    from coordinator.cli.console import note
    from link.authority import Authority, check_hosts, write_identity
    from link.errors import UsageError

    if role not in ("party", "coordinator"):
        raise UsageError(f"--role is party or coordinator, not '{role}'")
    authority = Authority.read(out)
    if role == "party":
        check_hosts(out, name, host or ())
    identity = authority.issue(name, "party" if role == "party" else "coordinator", host or ())
    write_identity(identity, out, force=force)
    note(f"created {out / f'{name}.crt'} and {out / f'{name}.key'}")


@app.command()
def show(out: _Out = Path("pki"), as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the certificates of an authority and until when they are valid."""
    from coordinator.cli.console import write_json, write_table
    from link.authority import show as certificates

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
                        "fingerprint": issued.fingerprint,
                        "valid_until": issued.valid_until.isoformat(),
                    }
                    for issued in found
                ],
            }
        )
        return
    write_table(
        ["name", "role", "hosts", "valid until", "SHA-256"],
        [[c.name, c.role, " ".join(c.hosts), f"{c.valid_until:%Y-%m-%d}", c.fingerprint] for c in found],
    )
