"""Makes distributions that add something to comine, as pip would have installed them, and forgets them again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.kinds import packages


def install(
    folder: Path, name: str, group: str, modules: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, **sources: str
) -> None:
    """Puts a distribution on the path of imports.

    Args:
        folder: Where it is made; one for each.
        name: Of the distribution.
        group: Of its entry points.
        modules: By the name of an entry point, the module that it names.
        monkeypatch: Takes the path away again.
        **sources: Modules of its own, by name.
    """
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "".join(f"{point} = {module}\n" for point, module in modules.items())
    (about / "entry_points.txt").write_text(f"[{group}]\n{points}")
    for module, source in sources.items():
        (folder / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    packages.added.cache_clear()
