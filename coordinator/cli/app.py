"""Puts the coordinator's commands together."""

from __future__ import annotations

import typer

from coordinator.cli import audit, job, pki
from coordinator.cli.demo import demo
from coordinator.cli.doctor import doctor
from coordinator.cli.explain import explain
from coordinator.cli.schema import schema
from coordinator.cli.simulate import simulate


def add_commands(app: typer.Typer) -> None:
    """Adds every command of the coordinator to `app`."""
    app.command()(demo)
    app.add_typer(pki.app, name="pki")
    app.command()(doctor)
    app.add_typer(job.app, name="job")
    app.add_typer(audit.app, name="audit")
    app.command()(simulate)
    app.command()(explain)
    app.command()(schema)
