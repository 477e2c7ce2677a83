"""Groups of parties that hold the same columns of different rows, as jobs over columns have them."""

from __future__ import annotations

from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.files.printable import enumeration
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups


def column_groups(spec: JobSpec) -> Groups:
    """The groups of a job; none where every party holds columns of its own."""
    return tuple(ColumnGroup(name, members) for name, members in spec.groups.items())


def check_groups(spec: JobSpec) -> None:
    """Refuses groups whose rows are not aligned as they must be.

    Raises:
        ConfigurationError: They are not.
    """
    if spec.groups and spec.alignment.mode != "union":
        raise ConfigurationError(
            '[groups] needs [align] mode = "union", by which nobody learns which party has a row; a mode of another '
            "kind would show who shares it"
        )


def groups_fact(spec: JobSpec) -> list[tuple[str, str]]:
    """What a report says of the groups, where there are any."""
    groups = "; ".join(f"{name}: {enumeration(members)}" for name, members in spec.groups.items())
    return [("column groups", groups)] if groups else []
