"""What of a job counts after it: its data, its parties and what it may have cost, by whichever version it was written.

A node runs a job only if its own version reads the specification to the letter. What ran once counts for ever, so what
another version wrote is read as far as it goes: keys that this version has and the other had not are at their defaults,
which are what the other one did; of a specification that has other keys or values, only what counts is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from jobs.kinds.charge import charge
from jobs.kinds.kind import EXACT
from jobs.kinds.packages import BUILT_IN, added
from jobs.kinds.registry import kind_at, read_spec
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.files.json_text import read_json
from party.policy.consent import support_asked
from party.policy.joint_result import UNKNOWN, JointResult, joint_result


class Remembered(NamedTuple):
    """What counts of a job.

    Attributes:
        dataset: Whose records it may cost something.
        name: Its own, for people.
        parties: All of them.
        min_support: As asked for, for people; empty where it is not to be read.
        charge: What a start may cost a record.
        spec: The specification, where this version reads it.
        result: What it counts as for what several jobs reveal together; at the worst, where only that much is read.
    """

    dataset: str
    name: str
    parties: tuple[str, ...]
    min_support: str
    charge: Charge
    spec: JobSpec | None
    result: JointResult


def remembered(written: bytes) -> Remembered:
    """What counts of a specification in the canonical form of some version.

    Raises:
        ConfigurationError: It does not say all that counts.
    """
    try:
        contents = read_json(written)
    except ValueError:
        raise ConfigurationError("its specification is not JSON") from None
    try:
        spec = read_spec(contents, "its specification")
    except ConfigurationError as error:
        return _as_written(contents, error)
    job = spec.job
    return Remembered(
        job.dataset,
        job.name,
        job.parties,
        support_asked(spec),
        charge(spec),
        spec,
        joint_result(spec),
    )


def _as_written(contents: Any, why: ConfigurationError) -> Remembered:
    try:
        job = contents["job"]
        dataset, name, parties = job["dataset"], job["name"], job["parties"]
        if not all(type(text) is str and text for text in (dataset, name, *parties)) or not isinstance(parties, list):
            raise why
        cost = _charge(_Written(contents.get("privacy") or {"model": EXACT.model}))
    except (KeyError, TypeError, AttributeError, ValueError, InvalidOperation):
        raise why from None
    result = JointResult(tuple(sorted(parties)), sums=False, threshold=UNKNOWN, columns=UNKNOWN)
    return Remembered(dataset, name, tuple(parties), "", cost, None, result)


@dataclass(frozen=True, slots=True)
class _Written:
    """A `[privacy]` table of any version, of which only these keys are read.

    Each raises KeyError where it is missing, and ValueError or ArithmeticError where it is no number.
    """

    table: Any

    @property
    def model(self) -> str:
        return str(self.table["model"])

    @property
    def epsilon(self) -> Decimal:
        return _number(self.table["epsilon"])

    @property
    def delta(self) -> Decimal:
        return _number(self.table["delta"])

    @property
    def local_epsilon(self) -> Decimal | None:
        given = self.table.get("local_epsilon")
        return None if given is None else _number(given)


def _charge(privacy: _Written) -> Charge:
    """What the kinds of its model say.

    Raises:
        ValueError: No kind has the model, or the table does not say it.
    """
    if privacy.model == EXACT.model:
        return EXACT
    for key in (*BUILT_IN, *added()):
        if key.model == privacy.model:
            return kind_at(key).charge_written(privacy)
    raise ValueError


def _number(text: Any) -> Decimal:
    number = Decimal(text) if isinstance(text, str) else Decimal(str(text))
    if not number.is_finite() or number < 0:
        raise ValueError
    return number
