"""How large the unions of a job may be: each party puts its key on the lists of all, so n parties work n² times.

A list holds as many places as the job's bound says, and fakes for each other party. Where a job says no bound, its few
parties learn how long lists are when it runs; of many parties a bound is asked for, so that all know beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jobs.spec import JobSpec

MOST_PLACES: Final = 1 << 22  # in the lists of all parties: about six minutes of work for each party's machine
MOST_UNBOUNDED: Final = 16  # parties
_LABELS: Final = frozenset({"items", "candidates", "itemsets"})  # under which a union of a job over rows is opened


def too_large_unions(spec: JobSpec) -> str | None:
    """Why a job's unions would cost too much, or nobody knows how much, and what to change; None where they do not."""
    parties, bound = len(spec.job.parties), spec.alignment.bound if spec.is_vertical else spec.union.bound
    if bound is None and parties <= MOST_UNBOUNDED:
        return None
    if bound is not None and parties * (bound + _fakes(parties)) <= MOST_PLACES:
        return None
    if not takes_unions(spec):
        return None
    key, or_else = "[union] bound", "take a catalogue"
    if spec.is_vertical:
        key, or_else = "[align] bound", 'take mode = "intersection"'
    if bound is None:
        return (
            f"a union of more than {MOST_UNBOUNDED} parties needs {key}: each works on the lists of all, so that its "
            f"work grows with the square of their number; set a bound, or {or_else}"
        )
    return (
        f"{key} = {bound}: the lists of {parties} parties, with fakes for each other, would have more than "
        f"{MOST_PLACES} places; lower the bound, or {or_else}"
    )


def blurs_pairs(spec: JobSpec) -> bool:
    """Whether the job shows its merger, behind the noise of common fakes, how much two others have in common.

    Two parties have no others, and alignments have the fakes of unions.
    """
    return len(spec.job.parties) > 2 and (spec.is_vertical or takes_unions(spec))


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


def _fakes(parties: int) -> int:
    from crypto.protocols.union_lists import common_fakes, room_for_common_fakes

    return room_for_common_fakes(parties, common_fakes(1.0))
