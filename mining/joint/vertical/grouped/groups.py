"""Which parties hold the same columns: the groups of a job, and what their tables must be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from link.errors import ConfigurationError, shareable
from mining.data.items.item_columns import check_columns


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Parties that hold the same columns of different rows.

    Attributes:
        name: Of the group.
        members: In the order of the job; one or more.
    """

    name: str
    members: tuple[str, ...]

    @property
    def speaker(self) -> str:
        """The member that opens to the other groups what all of this one know."""
        return self.members[0]


Groups = tuple[ColumnGroup, ...]


def group_of(groups: Groups, party: str) -> ColumnGroup:
    """The group that a party is in."""
    return next(group for group in groups if party in group.members)


def column_holders(groups: Groups, parties: Sequence[str]) -> tuple[str, ...]:
    """Who holds columns, by name: the groups, or where there are none the parties."""
    return tuple(group.name for group in groups) or tuple(parties)


def column_holder(groups: Groups, party: str) -> str:
    """The holder that a party is, or is a member of."""
    return group_of(groups, party).name if groups else party


def holder_members(groups: Groups, holder: str) -> tuple[str, ...]:
    """The parties of a holder of columns: of a group its members, else the party itself."""
    return next((group.members for group in groups if group.name == holder), (holder,))


def columns_of_holders(
    names: Sequence[str], columns: Mapping[str, Collection[str]], groups: Groups
) -> dict[str, Collection[str]]:
    """By holder of columns, those of a job that it has.

    Args:
        names: Of the job's columns.
        columns: By party, those that it has.
        groups: Of the job.

    Raises:
        ConfigurationError: As for `check_group_columns`; of the job's columns alone.
    """
    if not groups:
        return dict(columns)
    held = {party: [name for name in names if name in has] for party, has in columns.items()}
    check_group_columns(held, groups, ())
    return {group.name: held[group.speaker] for group in groups}


def check_group_columns(columns: Mapping[str, Collection[str]], groups: Groups, numeric: Iterable[str]) -> None:
    """Refuses tables that a job with column groups cannot join, where the columns of all parties are known.

    Args:
        columns: By party, the names of its columns without those of ids.
        groups: Of the job.
        numeric: The columns that the job puts into intervals.

    Raises:
        ConfigurationError: Two parties of a group have different columns, two groups have a column of one name, or
            nobody has a column that the job names.
    """
    for group in groups:
        known = set(columns[group.speaker])
        for member in group.members:
            for name in sorted(known ^ set(columns[member])):
                has, lacks = (group.speaker, member) if name in known else (member, group.speaker)
                _refuse(group, name, has, lacks)
    holder: dict[str, str] = {}
    for group in groups:
        for name in columns[group.speaker]:
            other = holder.setdefault(name, group.name)
            if other != group.name:
                raise shareable(
                    ConfigurationError(
                        f"the groups '{other}' and '{group.name}' both have the column '{name}'; in a vertical job "
                        "every column is in one group: leave it out in one of them"
                    )
                )
    check_columns({"": holder}, numeric)


def _refuse(group: ColumnGroup, column: str, has: str, lacks: str) -> NoReturn:
    raise shareable(
        ConfigurationError(
            f"the parties of the group '{group.name}' must have the same columns, and '{column}' is at {has} and not "
            f"at {lacks}; add it there, perhaps without values, or leave it out at {has}"
        )
    )
