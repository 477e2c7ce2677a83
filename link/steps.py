"""Steps of a job that are not taken again after a failure: what is known of them is kept, and compared.

Steps:
    1. in another attempt, every party opens of how many steps it has kept the results; the least number counts
    2. of each of these every party opens which step of which session it is, and a digest of its result, and of all
       frames that had passed between the two by then. From one party that learned something of it to another such one
       the digest covers that too; to anybody else only what all know, since the digest of a count is the count
    3. all go on from the last step of which all have kept the same; what comes after it is taken anew

Rounds:     2, or 1 where some party has kept nothing; none in a first attempt.
Output:     the common steps.
Adversary:  semi-honest parties. Two that have kept different results of one step, or of other frames, end the job: no
            receipts were exchanged in a session that broke off, so the digests stand for them.
            One that has no journal of an attempt of which others have kept a step draws no coins (`secret`).
Leakage:    how far each party had come when the attempt before ended. All else that is opened its receivers know.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import numpy as np

from link.disclosure import Declared, Learned
from link.errors import ConfigurationError, MalformedMessage, ProtocolViolation, shareable
from link.journal import BEHIND, FIRST, MAX_STEPS, ROOT, SECRET_BYTES, WHOLE, Journal, Known, Resumption, Step
from link.session import Session

MAX_ATTEMPTS: Final = 5  # of a job
LABEL: Final = "steps_kept"
_DIGEST_BYTES: Final = 32

_REPEATED: Final = ", with the very same noise, so that all attempts together cost a record what one costs"


async def begin(session: Session, journal: Journal) -> None:
    """Keeps what the steps of this session give, and goes on from those of earlier attempts that all parties have kept.

    Args:
        session: Of the job, in which no step has been taken.
        journal: Of the job, at this party.

    Raises:
        MalformedMessage: A peer names more steps than anybody keeps.
        ProtocolViolation: A peer has kept another result of a step than this party, or has other frames on record.
    """
    session.core.steps = Resumption(journal)
    if session.core.terms.attempt == 1:
        return
    kept = (await session.compute(journal.steps))[:MAX_STEPS]
    lane = session.lane("kept")
    others = await _numbers(lane, len(kept))
    behind = await session.compute(_is_behind, journal, any(others))
    common = await _common(lane, kept[: min(others)])
    agreed, before = ({step.name: step for step in part} for part in (kept[:common], kept[common:]))
    session.core.steps = Resumption(journal, agreed, before, common, behind)


async def step(session: Session, name: str, take: Callable[[], Awaitable[Known]], *, drawn: bool = False) -> Known:
    """The result of a step: that of an earlier attempt which all parties have kept, or a new one, which is kept.

    Args:
        session: The lane to which it belongs.
        name: Not used on this lane by another step; may be that of a lane.
        take: Takes it. All parties call this in the same order.
        drawn: Whether another session may have another result, as one that depends on coins.

    Raises:
        ProtocolViolation: The result is another than this party has kept, so somebody's rows have changed.
    """
    steps, name = session.core.steps, f"{session.path}/{name}"
    if steps.journal is None:
        return await take()
    if name in steps.agreed:
        return steps.agreed[name].known
    known = await take()
    taken = Step(name, session.id, known, _frames(session))
    before = steps.before.pop(name, None)
    if before is not None and not drawn and before.digest(learned=True) != taken.digest(learned=True):
        raise ProtocolViolation(
            f"'{taken.called}' of this job gave another result than in an earlier attempt, so somebody's rows have "
            "changed; check all nodes, and run the job again as a new one",
            party=session.others[0] if len(session.others) == 1 else None,
        )
    if steps.place is not None:
        place, steps.place = steps.place, None
        if place < MAX_STEPS and await session.compute(steps.journal.keep, place, taken):
            steps.place = place + 1
    return known


def _frames(session: Session) -> dict[str, bytes]:
    """By peer, a digest of the frames on this lane, and beneath it, that no earlier step has counted."""
    core = session.core
    return {peer: core.passed.take(core.me, peer, session.path) for peer in session.others}


async def secret(session: Session, name: str, inputs: bytes) -> bytes:
    """32 secret bytes of this party, the same in all attempts of the job: coins for what is noised in this step.

    Another attempt that draws all its coins from them repeats the very same noise on the very same values, so that it
    tells nothing more. They are for nothing else: masks, keys and shares come from `Session.randomness`, since a mask
    that meets two values reveals their difference. For the same reason they are bound to what is noised. All secrets of
    a job follow from one that is there from its first start on, so that an older copy of the journal has them all.

    Args:
        session: The lane to which the step belongs.
        name: Of the step, used once on this lane.
        inputs: 32 bytes, a digest of all that the noise is for, but this party's rows.

    Raises:
        ProtocolViolation: In an earlier attempt they were for something else.
        ConfigurationError: The journal was made after an attempt in which this party took part.
        ComineError: They cannot be kept, or those of an earlier attempt are lost.
    """
    if session.core.steps.behind:
        raise shareable(
            ConfigurationError(
                f"{session.me} took part in an earlier attempt of this job and knows nothing of it, so its state "
                "folder is an older copy; it draws no noise a second time: run the job again as a new one",
                party=session.me,
            )
        )
    journal, fresh = session.core.steps.journal, session.randomness(f"secret {name}").bytes(SECRET_BYTES)
    if journal is None:
        return fresh
    whole = f"{session.path}/{name}"
    if await session.compute(journal.secret, f"{whole} for", inputs) != inputs:
        raise ProtocolViolation(
            f"the draw of '{name}' would be for something else than in an earlier attempt of this job, and two draws "
            f"would reveal more than the job may; {session.me} draws none, so run the job again as a new one"
        )
    root = await session.compute(journal.secret, ROOT, fresh)
    return hmac.digest(root, whole.encode(), "sha256")


async def _numbers(session: Session, kept: int) -> list[int]:
    """How many steps each other party has kept."""
    await session.open(LABEL, np.array([kept], np.uint32))
    numbers = []
    for peer in session.others:
        (number,) = await session.receive_opened(peer, LABEL, np.uint32, (1,))
        if number > MAX_STEPS:
            raise MalformedMessage(f"{peer} names more than {MAX_STEPS} steps; check that node", party=peer)
        numbers.append(int(number))
    return numbers


def _is_behind(journal: Journal, steps_before: bool) -> bool:
    """Whether a journal is younger than an attempt of which its party could have drawn something.

    One that was made in a later attempt says so for good where another party has kept a step by then: no session gives
    one without this party, which had a journal before it greeted anybody.

    Args:
        journal: Of this party, of a job that is not in its first attempt.
        steps_before: Whether another party has kept a step.
    """
    return journal.secret(FIRST, BEHIND if steps_before else WHOLE) == BEHIND


async def _common(session: Session, kept: Sequence[Step]) -> int:
    """Of how many steps, from the first, all parties have kept the same, of those of which all have kept some."""
    if not kept:
        return 0
    for peer in session.others:
        await session.open(LABEL, _told(session, kept, peer), to=(peer,))
    common = len(kept)
    for peer in session.others:
        mine = _told(session, kept, peer)
        alike = mine == await session.receive_opened(peer, LABEL, np.uint8, mine.shape)
        same_step, same_account = alike[:, :_DIGEST_BYTES].all(axis=1), alike[:, _DIGEST_BYTES:].all(axis=1)
        here = int(np.argmin(same_step)) if not same_step.all() else len(kept)
        if not same_account[:here].all():
            called = kept[int(np.argmin(same_account[:here]))].called
            raise ProtocolViolation(
                f"{peer} and {session.me} have kept different accounts of '{called}' of this job, so it cannot go on; "
                "run it again as a new job",
                party=peer,
            )
        common = min(common, here)
    return common


def _told(session: Session, kept: Sequence[Step], peer: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Shape (steps, 64): what is told to a peer of each step."""
    rows = [each.heading + each.account(peer, learned={session.me, peer} <= set(each.known.to)) for each in kept]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), 2 * _DIGEST_BYTES)


def openings(parties: Sequence[str]) -> Declared:
    """The statement's line for what is opened when an attempt begins that is not the first."""
    what = "of how many steps each party has kept the results, and which these are, with digests of the results"
    return Declared(LABEL, frozenset(parties), what, 1 + MAX_STEPS, "at the start of another attempt")


def learned(parties: Sequence[str], *, noisy: bool) -> Learned:
    """What another attempt reveals.

    Args:
        parties: Of the job.
        noisy: Whether there is noise in what is taken anew.
    """
    what = "if the job goes on after a failure, how far each party had come, and again what the next steps reveal"
    detail = (
        f"where the job goes on after a failure, in at most {MAX_ATTEMPTS} attempts in all: how far each party had "
        "come; and again what the steps reveal that not all parties have kept. On the same rows that is the same"
    )
    return Learned(tuple(parties), "size", what, detail + (_REPEATED if noisy else ""))
