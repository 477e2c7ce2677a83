"""Packages from elsewhere, as an installer would put them on the path: a module and its entry points."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def bring(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    source: str,
    points: Mapping[str, Mapping[str, str]],
    package: str | None = None,
) -> None:
    """Installs a package for the time of a test.

    Args:
        folder: Of the test.
        monkeypatch: Undoes it.
        module: Its only module.
        source: The module's text.
        points: By group and name, what an entry point leads to.
        package: Its name; the module's, if None.
    """
    name = package or module
    place = folder / f"site-{name}"
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (place / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {home}\n" for key, home in each.items()) for group, each in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setitem(sys.modules, module, None)  # so that its end is the end of the module, too
    del sys.modules[module]
