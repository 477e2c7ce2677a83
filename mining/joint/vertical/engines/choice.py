"""Which engine a job takes, and who plays which part in it: from public parameters alone."""

from __future__ import annotations

from collections.abc import Mapping

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.outside_dealer import Dealings
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.errors import ConfigurationError
from link.session import Session
from mining.joint.vertical.choice import chosen_engine, is_dealt
from mining.joint.vertical.engines.interface import Engine
from mining.joint.vertical.engines.oblivious_transfer import ObliviousTransferEngine
from mining.joint.vertical.engines.paillier import PaillierEngine
from mining.joint.vertical.engines.replicated import DealtEngine, ReplicatedEngine
from mining.joint.vertical.parameters import COORDINATOR, VerticalMining, holders_of


def make_engine(
    session: Session,
    task: VerticalMining,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    dealings: Dealings | None = None,
) -> Engine:
    """The engine that the job takes.

    Args:
        session: A lane of its own.
        task: The public parameters.
        secrets: From `pairwise.agree` in this session.
        pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
        dealings: What this party has of the dealer, where the coordinator deals.

    Raises:
        ConfigurationError: Nobody deals, or the helper is no third party of the job.
    """
    match chosen_engine(task):
        case "paillier":
            return PaillierEngine(session, secrets, pairs, task.compute)
        case "ot":
            return ObliviousTransferEngine(secrets, pairs, task.compute)
    if not is_dealt(task, session.parties):
        return ReplicatedEngine(secrets, pairs, holders_of(task, session.parties))
    if dealings is None or task.helper != COORDINATOR:
        raise ConfigurationError(
            'nobody deals randomness to the two parties; [itemsets] engine = "replicated" with two parties needs '
            '[trust] helper = "coordinator"'
        )
    (parties,) = pairs.values()
    return DealtEngine(parties, dealings)
