"""What a joint horizontal mining run opens, and what else its parties learn: as data, for exactly these parameters.

A coordinator shows the statement too; so what only some jobs take is loaded for those.
"""

from __future__ import annotations

from crypto.protocols.union_disclosure import leakage
from link.disclosure import Declared, Learned
from mining.joint.parameters import MAX_ONE_SHOT_LENGTH, HorizontalMining

_MAX_UNION = 100_000_000  # elements, where no public bound is given


def may_be_one_shot(task: HorizontalMining) -> bool:
    """Whether the run may take the one-shot strategy."""
    chosen = task.strategy == "one-shot" or (task.strategy == "auto" and task.prefer != "disclosure")
    return chosen and task.allows(2)


def may_be_level_wise(task: HorizontalMining) -> bool:
    """Whether the run may take the level-wise strategy, for a start or as what follows an unbounded enumeration."""
    return task.allows(2)


def openings(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone = frozenset(parties)
    learners, outsiders = frozenset(task.learners), everyone - frozenset(task.learners)
    levels = min(task.max_length or MAX_ONE_SHOT_LENGTH, MAX_ONE_SHOT_LENGTH)
    sums = task.max_candidates * (levels + 1) + (len(task.catalogue) if task.catalogue else _MAX_UNION)
    union_size = len(parties) * task.bound if task.bound else _MAX_UNION
    found = [
        Declared("rows", everyone, "number of transactions of all parties together", 1, "at the start"),
    ]
    if task.disclose != "frequent":
        which, when = "each candidate's", "once per batch"
        if task.is_shared:
            which, when = "each frequent itemset's", "once for the items, and once for all longer itemsets"
        found.append(Declared("supports", learners, f"sum over all parties of {which} count", sums, when))
    told = everyone if task.is_shared else outsiders
    if told:
        found.append(Declared("frequent", told, "whether each candidate is frequent", sums, "once per batch"))
    if task.rules is not None:
        from mining.joint.shared_rules import rules_openings

        found += rules_openings(task, parties)
    if task.hides_names:
        from mining.joint.hidden_disclosure import hidden_openings

        found += hidden_openings(task, parties)
    elif task.universe != "catalogue":
        found.append(Declared("items", everyone, f"names of {_items(task)}", union_size, "before level 1"))
    if task.thin and may_be_level_wise(task):
        what = "candidates that are locally frequent at some party"
        found.append(Declared("candidates", everyone, what, union_size * levels, "before each level"))
    if may_be_one_shot(task):
        bit = "whether every party's local enumeration is bounded (an AND over all others)"
        found.append(Declared("enumeration_bounded", everyone, bit, 1, "after the local mining"))
        found.append(
            Declared("itemsets", everyone, f"{_carried(task)} at some party", union_size, "after the local mining")
        )
    return tuple(found)


def learned(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    outsiders = tuple(p for p in parties if p not in task.learners)
    lines = [
        Learned(parties, "result", "which itemsets are frequent"),
        Learned(parties, "size", "the number N of all transactions" + _if_two(parties, "; so each the other's number")),
        *_of_sums(task, parties),
    ]
    if outsiders and task.disclose != "frequent":
        lines.append(Learned(outsiders, "membership", "which candidates are frequent, but no support"))
    if task.rules is not None:
        from mining.joint.shared_rules import rules_learned

        lines += rules_learned(task, parties)
    if task.hides_names:
        from mining.joint.hidden_disclosure import hidden_learned

        lines += hidden_learned(task, parties)
    elif task.universe == "catalogue":
        lines.append(Learned(parties, "count", "nothing of items beyond the public catalogue and what is said above"))
    else:
        lines.append(Learned(parties, "membership", f"the names of {_items(task)}, not whose they are"))
        lines += _of_union(task, parties, "items")
    if may_be_one_shot(task):
        lines.append(Learned(parties, "membership", f"if one-shot: {_carried(task)} at some party, not at which"))
        whose = "the other's local enumeration is" if len(parties) == 2 else "all the others' local enumerations are"
        lines.append(Learned(parties, "membership", f"if one-shot: whether {whose} bounded"))
        lines += _of_union(task, parties, "itemsets")
    if task.thin and may_be_level_wise(task):
        lines.append(
            Learned(parties, "membership", "the candidates that are locally frequent at some party, not at which")
        )
        lines += _of_union(task, parties, "candidates")
    return tuple(lines)


def _of_sums(task: HorizontalMining, parties: tuple[str, ...]) -> list[Learned]:
    if task.disclose == "candidates":
        what = "the support of every candidate, frequent or not, summed over all parties"
        return [
            Learned(task.learners, "count", what + _if_two(parties, "; so the other's count of every candidate")),
        ]
    lines = [
        Learned(parties, "membership", "of a candidate that is not frequent only that it is not: no sum, no bound")
    ]
    if task.disclose == "supports":
        what = "the support of every frequent itemset, summed over all parties"
        lines.append(
            Learned(task.learners, "count", what + _if_two(parties, "; so the other's count of every frequent itemset"))
        )
    else:
        lines.append(Learned(parties, "count", "no support of any itemset, not even whether it is just above c"))
    return lines


def _items(task: HorizontalMining) -> str:
    if task.universe == "all-items":
        return "all items that occur at any party, infrequent ones included"
    return "the items that are locally frequent at some party"


def _carried(task: HorizontalMining) -> str:
    return "the maximal locally frequent itemsets" if task.union == "maximal" else "all locally frequent itemsets"


def _if_two(parties: tuple[str, ...], consequence: str) -> str:
    return consequence if len(parties) == 2 else ""


def _of_union(task: HorizontalMining, parties: tuple[str, ...], what: str) -> list[Learned]:
    """What the secure set union tells beside the union itself."""
    found = leakage(parties, task.merger, bound=task.bound)
    return [Learned(line.who, line.kind, f"of the union of {what}: {line.what}") for line in found]
