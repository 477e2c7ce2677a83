"""What a joint horizontal mining run opens, and what else its parties learn: as data, for exactly these parameters.

A coordinator shows the statement too; so what only some jobs take is loaded for those.
"""

from __future__ import annotations

from typing import Final

from crypto.protocols.sums import masked_maximum
from crypto.protocols.union.prefix_disclosure import leakage, most_opened
from crypto.protocols.union.prefixes import LIMITS
from crypto.protocols.union.size_classes import LISTS, SETS
from link.disclosure import Declared, Learned
from mining.joint.parameters import MAX_ONE_SHOT_LENGTH, Disclose, HorizontalMining, most_mined
from mining.thresholds import FLOOR

_OFTEN_SOMEWHERE: Final = (
    "of what is locally frequent, that some party has it often; jobs with other settings reveal roughly how often and "
    "where"
)
LOCALLY_FREQUENT: Final = (
    f"of what is locally frequent at some party, that it is in at least {FLOOR} of that party's rows, or in an equal "
    "share of the least count where that is fewer; jobs with other thresholds reveal the largest of all parties' own "
    "counts, but only its class of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...; where parties differ in size, jobs with another "
    "lambda may reveal whose it is"
)
_SOMEWHERE: Final = "what is frequent at some party, not at which"
_MAX_ITEMS = 100_000_000  # whose counts are summed at level 1, where no catalogue says how many there are
_INDEX_BYTES = 4  # of a position, at the most: of an item in the dictionary, or of a candidate in its level


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
    sums = task.max_candidates * (levels + 1) + (len(task.catalogue) if task.catalogue else _MAX_ITEMS)
    united = len(parties) * SETS.rounded(task.bound or SETS.most)  # elements of a union
    found = [
        Declared("rows", everyone, "number of transactions of all parties together", 1, "at the start"),
    ]
    if task.disclose != "frequent":
        which, when = "each candidate's", "once per batch"
        if task.is_shared:
            which, when = (
                "each frequent itemset's",
                "once for the items, or these and their pairs, and once for all longer itemsets",
            )
        found.append(Declared("supports", learners, f"sum over all parties of {which} count", sums, when))
    receivers = everyone if task.is_shared else outsiders
    if receivers:
        found.append(Declared("frequent", receivers, "whether each candidate is frequent", sums, "once per batch"))
    if task.rules is not None:
        from mining.joint.shared_rules import rules_openings

        found += rules_openings(task, parties)
    if task.hides_names:
        from mining.joint.horizontal.hidden_disclosure import hidden_openings

        found += hidden_openings(task, parties)
    elif task.universe != "catalogue":
        most, what = most_opened(united, task.max_item_bytes), f"names of {_items(task)}, bit by bit"
        found.append(Declared("items", everyone, what, most, "before level 1"))
    if task.thin and may_be_level_wise(task):
        what = "the candidates that are locally frequent at some party, bit by bit"
        most = levels * most_opened(united, _INDEX_BYTES)
        found.append(Declared("candidates", everyone, what, most, "before each level"))
    if may_be_one_shot(task):
        bit = "whether every party's local enumeration is bounded (to each party, the AND over all others)"
        found.append(Declared("enumeration_bounded", everyone, bit, 1, "after the local mining"))
        most = most_opened(united, levels * _INDEX_BYTES)
        found.append(Declared("itemsets", everyone, f"{_carried(task)}, bit by bit", most, "after the local mining"))
    if words := _most_words(task, levels):
        found.append(masked_maximum.declared(parties, words))
    return tuple(found)


def _most_words(task: HorizontalMining, levels: int) -> int:
    """The most words of masked maxima in a run, however it goes."""
    thinned = levels - 1 if task.thin and may_be_level_wise(task) else 0
    by_prefixes = (task.universe != "catalogue") + thinned + may_be_one_shot(task)
    aligned = LISTS.beyond if task.hides_names else 0
    return by_prefixes * sum(LIMITS) + aligned


def learned(task: HorizontalMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    outsiders = tuple(p for p in parties if p not in task.learners)
    lines = [
        which_are_frequent(task.disclose, task.learners, parties),
        Learned(
            parties, "size", "the number N of all transactions" + _if_two(parties, "; so each the other's number")
        ).main(_if_two(parties, "N, so the other's number of rows")),
        *_of_sums(task, parties),
    ]
    if outsiders and task.disclose != "frequent":
        lines.append(Learned(outsiders, "membership", "which candidates are frequent, but no support").main())
    if task.rules is not None:
        from mining.joint.shared_rules import rules_learned

        lines += rules_learned(task, parties)
    if task.hides_names:
        from mining.joint.horizontal.hidden_disclosure import hidden_learned

        lines += hidden_learned(task, parties)
    elif task.universe == "catalogue":
        lines.append(
            Learned(parties, "count", "nothing of items beyond the public catalogue and what the other lines say")
        )
    else:
        lines.append(_named(task, parties))
        lines += _of_union(task, parties, "items")
    if may_be_one_shot(task):
        lines += _of_one_shot(task, parties)
    if task.thin and may_be_level_wise(task):
        lines.append(_of_some_party(parties, "the candidates that are", when=_if_level_wise(task)))
        lines += _of_union(task, parties, "candidates")
    if task.universe == "frequent-items" or may_be_one_shot(task) or task.thin:
        lines.append(Learned(parties, "count", _OFTEN_SOMEWHERE, LOCALLY_FREQUENT))
    return tuple(lines)


def _of_one_shot(task: HorizontalMining, parties: tuple[str, ...]) -> list[Learned]:
    """The bit is opened wherever the strategy is tried; the union only where all enumerations are bounded."""
    named = task.strategy == "one-shot"
    few = "the other's" if len(parties) == 2 else "all the others'"
    whose = "the other's local enumeration is" if len(parties) == 2 else "all the others' local enumerations are"
    most = f"of at most {most_mined(task):,} itemsets, none longer than {MAX_ONE_SHOT_LENGTH}"
    bit = f"whether {whose} bounded: {most}{'' if named else ' (if one-shot is taken)'}"
    when = f" (if {'' if named else 'one-shot is taken and '}all local enumerations are bounded)"
    return [
        Learned(
            parties, "membership", f"whether {few} locally frequent itemsets are few and short enough to list", bit
        ),
        _of_some_party(parties, _carried_in_short(task), exactly=_carried(task), when=when),
        *_of_union(task, parties, "itemsets"),
    ]


def _if_level_wise(task: HorizontalMining) -> str:
    if task.strategy == "one-shot":
        return " (if level-wise follows, as an enumeration is not bounded or the union has too many subsets)"
    return " (if level-wise is taken)" if may_be_one_shot(task) else ""


def which_are_frequent(disclose: Disclose, learners: tuple[str, ...], parties: tuple[str, ...]) -> Learned:
    """What all parties learn of any job; summaries need not say it where it goes without saying."""
    line = Learned(parties, "result", "which itemsets are frequent")
    return line if disclose != "frequent" and set(parties) <= set(learners) else line.main()


def infrequent(parties: tuple[str, ...], what: str, *, opened: bool) -> Learned:
    """What is learned of candidates that are not frequent.

    Args:
        parties: All of the job.
        what: A sum or a support, which stays hidden.
        opened: Whether those of frequent itemsets are opened, from which something may follow.
    """
    only = f"of a candidate that is not frequent only that it is not: no {what}, no bound"
    if not opened:
        return Learned(parties, "membership", only)
    detail = (
        f"{only}, but what follows from those of frequent itemsets and N: where each row has one of a few items, as of "
        "a column's values, and all of these but one are frequent, as many rows as are left have that one"
    )
    return Learned(parties, "membership", f"{only}, but what follows from opened ones", detail)


def _of_sums(task: HorizontalMining, parties: tuple[str, ...]) -> list[Learned]:
    if task.disclose == "candidates":
        what = "the support of every candidate, frequent or not, summed over all parties"
        return [
            Learned(task.learners, "count", what + _if_two(parties, "; so the other's count of every candidate")).main(
                "the support of every candidate, frequent or not" + _if_two(parties, ", so the other's count of it")
            ),
        ]
    lines = [infrequent(parties, "sum", opened=task.disclose == "supports")]
    if task.disclose == "supports":
        what = "the support of every frequent itemset, summed over all parties"
        lines.append(
            Learned(
                task.learners, "count", what + _if_two(parties, "; so the other's count of every frequent itemset")
            ).main(_if_two(parties, "the support of every frequent itemset, so the other's count of it"))
        )
    else:
        none = Learned(parties, "count", "no support of any itemset, not even whether it is just above c")
        lines.append(none.main("no support of any itemset"))
    return lines


def _items(task: HorizontalMining) -> str:
    if task.universe == "all-items":
        return "all items that occur at any party, infrequent ones included"
    return "the items that are locally frequent at some party"


def _named(task: HorizontalMining, parties: tuple[str, ...]) -> Learned:
    """What the union of items reveals, and of their holders."""
    if task.universe != "all-items":
        return _of_some_party(parties, "the names of the items that are", when="")
    what = f"the names of {_items(task)}"
    if len(parties) > 2:
        brief = "the names of all items that occur, not whose they are"
        return Learned(parties, "membership", f"{what}, not whose they are").main(brief)
    short = "the names of all items that occur at either party; what a party does not hold itself, the other does"
    detail = f"{what}, and of each that a party does not hold itself, that the other does"
    return Learned(parties, "membership", short, detail).main("the names of all items that occur at either party")


def _of_some_party(parties: tuple[str, ...], what: str, *, when: str, exactly: str = "") -> Learned:
    """What a union of what is locally frequent reveals, and of where that is so.

    Args:
        parties: All parties.
        what: Is locally frequent.
        when: The condition under which the union is taken.
        exactly: What is, with "locally frequent at some party" in it, where `what` is shorter.
    """
    two, need = len(parties) == 2, "; they need not be frequent altogether"
    where = ", and of each that is not so at a party itself, that it is so at the other" if two else ", not at which"
    short = "; if not at a party itself, then at the other" if two else ", not at which"
    detail = f"{exactly or f'{what} locally frequent at some party'}{where}{need}{when}"
    brief = "what is frequent at the other" if two else _SOMEWHERE
    return Learned(parties, "membership", f"{what} locally frequent at some party{short}", detail).main(brief)


def _carried(task: HorizontalMining) -> str:
    """The union is over positions in the dictionary of frequent items, so it names no others."""
    if task.union == "maximal":
        return "the itemsets of two or more frequent items that are maximal among those locally frequent at some party"
    return "all itemsets of two or more frequent items that are locally frequent at some party"


def _carried_in_short(task: HorizontalMining) -> str:
    return "the itemsets of frequent items that are" + (" maximal among those" if task.union == "maximal" else "")


def _if_two(parties: tuple[str, ...], consequence: str) -> str:
    return consequence if len(parties) == 2 else ""


def _of_union(task: HorizontalMining, parties: tuple[str, ...], what: str) -> list[Learned]:
    """What a union by prefixes reveals beside the union itself."""
    return [line.of(f"the union of {what}") for line in leakage(parties, bound=task.bound)]
