"""Puts the documentation site into wheels, where the tools that build it are at hand."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SiteHook(BuildHookInterface):
    """Without the tools, as in the container image, a wheel has the pages as Markdown alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the site; an editable installation finds that of `make docs`."""
        if version == "editable" or find_spec("zensical") is None:
            return
        sys.path.insert(0, str(Path(self.root) / "scripts"))
        import documentation

        site = Path(self.root) / "build" / "site"
        documentation.build(site, strict=False)
        build_data["force_include"][str(site)] = "coordinator/site"
