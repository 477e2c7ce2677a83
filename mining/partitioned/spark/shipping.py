"""The packages that kernels are from, as one file for the workers of a cluster."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import mining

PACKAGES: Final = ("crypto", "ldp", "anonymize", "link", "mining", "protos")


def write_packages(folder: Path) -> Path:
    """Writes the Python modules of these packages into an archive that Python imports from, the same each time."""
    root = Path(mining.__file__).parents[1]
    path = folder / "comine_kernels.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for module in sorted((root / package).rglob("*.py")):
                archive.writestr(zipfile.ZipInfo(str(module.relative_to(root))), module.read_bytes())
    return path
