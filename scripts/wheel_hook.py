"""Puts into wheels a bill of materials, and the documentation site where the tools that build it are at hand."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):
    """Without the tools, as in the container image, a wheel has the pages as Markdown alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the bill, and builds the site; an editable installation has none, and finds that of `make docs`."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "scripts"))
        import bill_of_materials

        bill = Path(self.root) / "build" / "comine.cdx.json"
        bill.parent.mkdir(exist_ok=True)
        bill.write_text(bill_of_materials.of_pins(Path(self.root)), encoding="utf-8")
        build_data["sbom_files"].append(str(bill))
        if find_spec("zensical") is None:
            return
        import documentation

        site = Path(self.root) / "build" / "site"
        documentation.build(site, strict=False)
        build_data["force_include"][str(site)] = "coordinator/site"
