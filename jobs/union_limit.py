"""How large the unions of a job may be: each party puts its key on the lists of all, so n parties work n² times.

A list holds as many places as the size class of the job's bound, and fakes for each other party; a place is as wide as
the longest name. Where a job says no bound, its few parties learn how long lists are when it runs; of many parties a
bound is asked for, so that all know beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from jobs.spec import JobSpec

MOST_PLACES: Final = 1 << 22  # in the lists of all parties: about six minutes of work for each party's machine
MOST_UNBOUNDED: Final = 16  # parties
USUAL_WIDTH: Final = 8  # blocks of a name of the usual length, which a place may have
_LABELS: Final = frozenset({"items", "candidates", "itemsets"})  # under which a union of a job over rows is opened


def too_large_unions(spec: JobSpec) -> str | None:
    """Why a job's unions would cost too much, or nobody knows how much, and what to change; None where they do not."""
    given = ListBound.of(spec)
    if given.value is None and len(spec.job.parties) <= MOST_UNBOUNDED:
        return None
    width = 1 if given.value is None else _width(spec)
    if given.value is not None and _places(spec, given.value) * width <= MOST_PLACES:
        return None
    if not takes_unions(spec):
        return None
    or_else = 'take mode = "intersection"' if spec.is_vertical else "take a catalogue"
    if given.value is None:
        return (
            f"a union of more than {MOST_UNBOUNDED} parties needs {given.key}: each works on the lists of all, so that "
            f"its work grows with the square of their number; set a bound, or {or_else}"
        )
    places, lower = f"{MOST_PLACES // width} places", "the bound"
    if width > 1:
        places += f" for names of up to {spec.union.max_item_bytes} bytes"
        lower += " or max_item_bytes"
    return (
        f"{given.key} = {given.value}: the lists of {len(spec.job.parties)} parties, with fakes for each other, would "
        f"have more than {places}; lower {lower}, or {or_else}"
    )


class ListBound(NamedTuple):
    """The bound on the lists that a job makes of its parties' sets or rows.

    Attributes:
        key: Of the job, which sets it.
        value: None where the job sets none.
    """

    key: str
    value: int | None

    @classmethod
    def of(cls, spec: JobSpec) -> ListBound:
        """The one of a job."""
        if spec.is_vertical:
            return cls("[align] bound", spec.alignment.bound)
        return cls("[union] bound", spec.union.bound)


def blurred_merges(spec: JobSpec) -> int:
    """How often, at the most, the job shows its merger how much two others have in common, each time with new noise.

    Two parties have no others. An alignment has the fakes of a union. Where items are counted under pseudonyms, two
    unions may be of the very same items: of all that are placed, and of those that are frequent. Other unions of one
    job that mines are of different things. A release unites the classes of one large node after the other, and whoever
    names the job can choose hierarchies by which these are the same in many.
    """
    if len(spec.job.parties) == 2 or not (spec.is_vertical or takes_unions(spec)):
        return 0
    if spec.anonymizes and not spec.is_vertical:
        from jobs.kinds.release.parameters import joint_anonymisation
        from mining.joint.anonymisation.disclosure import nodes_with_unions

        return nodes_with_unions(joint_anonymisation(spec))
    return 2 if spec.mines and not spec.is_vertical and _hides_names(spec) else 1


def without_unions(spec: JobSpec) -> str:
    """What a job can take so that `blurred_merges` counts nothing."""
    if spec.is_vertical:
        return "two parties alone"
    return 'keys = "none"' if spec.anonymizes else "a catalogue"


def takes_unions(spec: JobSpec) -> bool:
    """Whether the job may take a secure set union."""
    if spec.is_vertical:
        return spec.alignment.mode == "union"
    if spec.anonymizes:
        return spec.anonymization.keys == "union"
    if not spec.mines or spec.privacy.model != "exact":
        return False
    from jobs.spec import UNIVERSES

    if spec.itemsets.universe not in UNIVERSES and spec.itemsets.catalogue is None:
        return False  # of a catalogue that is yet to be read
    from jobs.parameters import horizontal_mining
    from mining.joint.disclosure import openings

    return bool(_LABELS & {line.label for line in openings(horizontal_mining(spec), spec.job.parties)})


def _hides_names(spec: JobSpec) -> bool:
    from jobs.parameters import horizontal_mining

    return horizontal_mining(spec).hides_names


def _places(spec: JobSpec, bound: int) -> int:
    """Of the lists of all parties."""
    from crypto.protocols.size_classes import SETS
    from crypto.protocols.union_lists import EPSILON_COMMON, common_fakes, room_for_common_fakes

    parties = len(spec.job.parties)
    return parties * (SETS.rounded(bound) + room_for_common_fakes(parties, common_fakes(EPSILON_COMMON)))


def _width(spec: JobSpec) -> int:
    """How often a place is as wide as a usual name, where the job allows longer ones."""
    from crypto.primitives.blocks import blocks_needed
    from crypto.protocols.union_lists import widened

    if spec.is_vertical or spec.anonymizes:  # pseudonyms, or numbers of classes
        return 1
    return -(-widened(blocks_needed(spec.union.max_item_bytes)) // USUAL_WIDTH)
