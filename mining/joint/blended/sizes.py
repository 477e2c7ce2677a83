"""What blended mining sends, from the numbers on which it hangs: all of them public once it has run."""

from __future__ import annotations

from collections.abc import Mapping

from link.traffic import Traffic
from mining.joint.blended.parameters import Blending
from mining.joint.hybrid.sizes import document_traffic

_WORD_BYTES = 8


def blended_traffic(
    traffic: Traffic,
    lane: str,
    task: Blending,
    named: Mapping[str, tuple[int, int]],
    head: int,
    result: tuple[int, int],
) -> None:
    """Enters `blended.mine` on the lane of this path.

    Rounds: 1 for the records, 1 for names, 1 for counts and answers, which do not wait for each other, and 1 for the
    result.

    Args:
        traffic: The job's.
        lane: The lane.
        task: The public parameters.
        named: By trusted party, the bytes of its list of names, and how many they are.
        head: The items of the head list.
        result: The bytes of the estimates, and how many they are.
    """
    for party in traffic.parties:
        traffic.open(party, traffic.others(party), lane, "records", 1, _WORD_BYTES)
    for party, (size, number) in named.items():
        document_traffic(traffic, lane, party, traffic.others(party), "head", size, number)
    for party in traffic.parties:
        if head and party != task.analyst:
            label = "counts" if party in task.opted_in else "answers"
            traffic.open(party, [task.analyst], lane, label, head, _WORD_BYTES * head)
    learners = [party for party in task.learners if party != task.analyst]
    document_traffic(traffic, lane, task.analyst, learners, "estimates", *result)
    traffic.rounds += 2 + bool(head) + bool(learners)
