"""What blended mining sends, from the numbers on which it hangs: all of them public once it has run."""

from __future__ import annotations

from collections.abc import Mapping

from link.traffic import Traffic
from mining.joint.blended.parameters import Blending
from mining.joint.hybrid.sizes import document_traffic

_WORD_BYTES = 8


def blended_traffic(traffic: Traffic, task: Blending, named: Mapping[str, int], head: int, result_bytes: int) -> None:
    """Enters `blended.mine`.

    Rounds: 1 for the records, 1 for names, 1 for counts and answers, which do not wait for each other, and 1 for the
    result.

    Args:
        traffic: Where it is entered.
        task: The public parameters.
        named: By trusted party, the bytes of its list of names.
        head: The items of the head list.
        result_bytes: Of the estimates.
    """
    for party in traffic.parties:
        traffic.send(party, traffic.parties, _WORD_BYTES)
    for party, size in named.items():
        document_traffic(traffic, party, traffic.parties, size)
    for party in traffic.parties:
        if head:
            traffic.send(party, task.analyst, _WORD_BYTES * head)
    document_traffic(traffic, task.analyst, task.learners, result_bytes)
    traffic.rounds += 2 + bool(head) + any(party != task.analyst for party in task.learners)
