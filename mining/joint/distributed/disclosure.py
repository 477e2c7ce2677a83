"""What mining under distributed noise opens, and what else its parties learn: as data, for exactly these parameters."""

from __future__ import annotations

from link.disclosure import Declared, Learned
from mining.joint.collusion import odds
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.distributed.row_sizes import MOST_CLASSES


def openings(task: DistributedMining, parties: tuple[str, ...]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone = frozenset(parties)
    supports = task.max_length * task.max_candidates + len(task.catalogue or ())
    found = [Declared("noisy_rows", everyone, "the number of all transactions, with noise", 1, "at the start")]
    if task.catalogue is None:
        what = "names of items that each party has often enough, by noisy counts of its own"
        found.append(Declared("items", everyone, what, task.max_candidates, "before level 1"))
    what = "how many records hold how many candidates, in classes, with noise of all parties"
    found.append(Declared("noisy_sizes", everyone, what, 2 * task.max_length * MOST_CLASSES, "once for each length"))
    what = "each candidate's support over all parties, with noise of all of them"
    found.append(Declared("noisy_supports", everyone, what, supports, "once for each length"))
    return tuple(found)


def learned(task: DistributedMining, parties: tuple[str, ...]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    budget = f"ε = {float(task.epsilon):g} and δ = {float(task.delta):g} of a record"
    seen = "the noisy supports of all candidates, noisy numbers of records by how many candidates they hold"
    seen += ", which items each party names" if task.catalogue is None else ""
    short = "noisy supports of candidates, noisy sizes of records" + (
        ", the items each party names" if task.catalogue is None else ""
    )
    lines = [
        Learned(parties, "size", "the number N of all transactions, with noise").main("N with noise"),
        Learned(
            parties,
            "count",
            f"{short}: {budget}",
            f"{seen}, and what follows from these: {budget} for all of it together, whether the record is there or not",
        ).main(short),
        Learned(parties, "count", "no exact support, and of no party how much it adds to one"),
    ]
    if task.catalogue is None:
        lines.append(
            Learned(
                parties,
                "membership",
                "of an item that is not named only that no party has it often enough, give or take the noise",
            )
        )
    else:
        lines.append(Learned(parties, "count", "nothing of items beyond the public catalogue"))
    return tuple(lines)


def collusion(task: DistributedMining, parties: tuple[str, ...]) -> str:
    """How many colluders it withstands."""
    most = len(parties) - 1
    if task.colluding == 0:
        who = "anybody who is none of the parties; a party knows its own noise, and towards it there is less of it"
    elif task.colluding == 1:
        who = "each single party, which knows its own noise"
    else:
        who = f"any {task.colluding} parties that pool their noise"
    more = "" if task.colluding >= most else f"; more, up to {most}, see sums over the others with less noise"
    return f"the budget holds against {who}{more}"


def worst(task: DistributedMining, parties: tuple[str, ...]) -> str:
    """The worst that colluders could find out, in plain words."""
    most = len(parties) - 1
    who = "outsiders" if task.colluding == 0 else "any party" if task.colluding == 1 else f"{task.colluding} parties"
    against = odds(who, task.epsilon, task.delta)
    if task.colluding >= most:
        return against
    if len(parties) == 2:
        return f"{against}; the other party sees less noise"
    return f"{against}; {most} parties together see less noise"
