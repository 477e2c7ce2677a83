"""`comine demo`: three insurers mine rules together over real data, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder for the demo's files; an earlier demo in it is replaced."),
    ] = Path("demo-out"),
) -> None:
    """Watch three insurers mine rules together: real data, separate processes, mutual TLS, nothing pooled."""
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # every fault is reported in comine's own words
    from coordinator.demo.run import run_demo

    run_demo(out)
