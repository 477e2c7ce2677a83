"""Puts the coordinator's commands together."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

COMMANDS: Final = (
    "demo",
    "pki",
    "doctor",
    "job",
    "audit",
    "simulate",
    "compare",
    "frequency",
    "shuffle",
    "anonymize",
    "query",
    "explain",
    "schema",
)
"""By name, in the order of the help. Each is a module of this package with a group `app` or a function of that name."""


def add_command(app: typer.Typer, name: str) -> None:
    """Adds one of the coordinator's commands to `app`."""
    module = import_module(f"coordinator.cli.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command()(getattr(module, name))
