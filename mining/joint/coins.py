"""The coins of noise: what a party draws in a step of a job it draws again in every attempt, and for nothing else.

Noise hides records as often as it is drawn: of many draws the mean is seen. So a party draws all noise of a step, and
all that perturbs or chooses records by chance, from a secret that is the same in all attempts of the job. Whoever
breaks a job off and has it go on sees again what was seen before, and ε is spent once.

Coins that meet other inputs would reveal by how much these differ. The rows are the same, or the party takes no part.
All else on which a draw depends is public: a secret is bound to a digest of that, and a party that is to draw by it for
something else ends the job.
"""

from __future__ import annotations

import hashlib

from crypto.primitives.hashing import encode_labels
from crypto.primitives.randomness import Randomness
from link.session import Session
from link.steps import secret
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.partitioned.kernels import rows_of_block


async def coins(session: Session, purpose: str, *inputs: str | int | bytes) -> Randomness:
    """The coins of one draw of this party, the same in each attempt of the job.

    Args:
        session: The lane of the step.
        purpose: Of the draw; used once on this lane.
        *inputs: All on which it depends beside the rows and the job's specification.

    Raises:
        ProtocolViolation: In an earlier attempt the draw had other inputs.
        ComineError: The coins cannot be kept, or those of an earlier attempt are lost.
    """
    bound = hashlib.sha256(encode_labels(*inputs)).digest()
    return Randomness.from_key(await secret(session, purpose, bound)).derive("coins", bound)


def layout(data: Rows) -> bytes:
    """How rows lie, which decides on the coins of each where records are chosen or perturbed in blocks."""
    if isinstance(data, Transactions):
        return b""
    return encode_labels(*data.parts(rows_of_block))
