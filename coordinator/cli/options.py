"""Options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FederationFile = Annotated[
    Path, typer.Option("--federation", envvar="COMINE_FEDERATION", help="The federation file.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HERE = Path("federation.toml")
