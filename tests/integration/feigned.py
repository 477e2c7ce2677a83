"""A release of comine that is still to come, feigned in a process of its own: other software, versions and schema."""

from __future__ import annotations

import sys
from dataclasses import replace

from link.core import Terms
from link.version import WINDOW, Window
from party.state.node_database import NodeTables

SOFTWARE = "99.0.0"
NEXT = Window(WINDOW.oldest, WINDOW.latest + 1)
MIGRATION = "CREATE TABLE later (what TEXT NOT NULL); INSERT INTO later VALUES ('migrated')"


def next_release() -> None:
    """Makes the release out of what this process has loaded; before it does anything."""
    now = WINDOW
    for module in list(sys.modules.values()):
        names = vars(module)
        if "software_version" in names:
            names["software_version"] = lambda: SOFTWARE
        if names.get("WINDOW") == now:
            names["WINDOW"] = NEXT
    Terms.__init__.__defaults__ = (NEXT,)
    NodeTables.KIND = replace(NodeTables.KIND, versions=(*NodeTables.KIND.versions, MIGRATION))
