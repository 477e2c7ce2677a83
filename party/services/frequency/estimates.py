"""Estimates of a round, as readers get them: raw, made consistent, decoded, or found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jobs.collections.spec import CollectionSpec
from ldp.domain import Domain
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.heavy_hitters.bit_strings import Strings, Texts
from ldp.heavy_hitters.found import HeavyHitter
from ldp.heavy_hitters.prefix_extending import PrefixHashing
from ldp.mechanism import Mechanism
from ldp.numeric.mean import MeanEstimate, NumericMechanism
from ldp.rappor.mechanism import BloomCounts
from link.errors import ConfigurationError
from party.services.frequency.collection import Snapshot
from party.services.frequency.policy import FrequencySection
from party.services.frequency.schedule import release_of

Floats = NDArray[np.float64]
Kind = Literal["counts", "mean", "found"]

MAX_CANDIDATES: Final = 20_000
MAX_CANDIDATE_BYTES: Final = 1 << 22
MAX_FILTERS: Final = 1 << 23  # of candidates in all cohorts
MAX_FOUND: Final = 10_000
PIECE_VALUES: Final = 1 << 16  # in one message


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a round.

    Attributes:
        most: Only so many values, those with the largest estimates; 0: all.
        post_processing: A method of `ldp.consistency`; empty: raw.
        candidates: Texts to look for where the mechanism can; none: those of the domain.
    """

    most: int = 0
    post_processing: str = ""
    candidates: tuple[str, ...] = ()

    def is_quick(self, mechanism: Mechanism[Any]) -> bool:
        """Whether the answer takes milliseconds."""
        return not self.post_processing and isinstance(mechanism, FrequencyOracle | NumericMechanism)


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The estimates from a round.

    Attributes:
        kind: `counts` of values, the `mean` of numbers, or values that were `found`.
        codes: The values' numbers; None where all follow in their order.
        counts: Of the values; or the mean.
        variances: Of the counts, or of the mean.
        found: Values with their frequencies, the most frequent first.
        fresh: Under continual release: whether this is a publication, and not the one before again.
        of: Of how many reports the counts are, where not of the round's own: those of the publication that is shown
            again. 0 where they are.
    """

    kind: Kind
    codes: NDArray[np.int64] | None = None
    counts: Floats = field(default_factory=_none)
    variances: Floats = field(default_factory=_none)
    found: tuple[tuple[str, float, float], ...] = ()
    fresh: bool = True
    of: int = 0

    def __len__(self) -> int:
        return len(self.found) if self.kind == "found" else len(self.counts)

    def pieces(self) -> Iterator[Answer]:
        """The same in parts that fit a message; at least one."""
        for start in range(0, max(len(self), 1), PIECE_VALUES):
            part = slice(start, start + PIECE_VALUES)
            codes = None if self.codes is None else self.codes[part]
            yield Answer(
                self.kind, codes, self.counts[part], self.variances[part], self.found[part], self.fresh, self.of
            )


def is_shown(snapshot: Snapshot, policy: FrequencySection) -> bool:
    """Whether there are reports to estimate from, as many as the policy asks for; what was released stays so."""
    return bool(snapshot.stored.result) or len(snapshot.aggregator) >= max(1, policy.min_reports)


def answer(snapshot: Snapshot, question: Question, spec: CollectionSpec, domain: Domain | None) -> Answer:
    """The estimates from the reports of a round.

    Args:
        snapshot: The reports.
        question: What is asked.
        spec: What the collection was created as.
        domain: Its values; None where they are not known.

    Raises:
        ConfigurationError: There is no report, or the question does not fit the mechanism.
    """
    mechanism = snapshot.mechanism
    if snapshot.stored.result and snapshot.final:
        return _released(snapshot, question, mechanism)
    if not len(snapshot.aggregator):
        raise ConfigurationError(f"round {snapshot.stored.number} has no report yet to estimate from")
    estimate = snapshot.aggregator.estimate()
    if isinstance(mechanism, PrefixHashing):
        _check_raw(question, mechanism)
        most = question.most or spec.collection.k
        assert most is not None
        return _found(_prefixes(mechanism, estimate, min(most, MAX_FOUND)))
    if isinstance(estimate, BloomCounts):
        return _decoded(estimate, question, domain)
    if isinstance(estimate, Estimate):
        return _counted(estimate, mechanism, question, fresh=True)
    _check_raw(question, mechanism)
    if isinstance(estimate, MeanEstimate):
        return Answer("mean", None, np.array([estimate.mean]), np.array([estimate.variance]))
    return _found(estimate[: question.most or None])


def _counted(estimate: Estimate, mechanism: Mechanism[Any], question: Question, *, fresh: bool) -> Answer:
    if question.candidates:
        raise ConfigurationError(f"{mechanism.name} estimates a known domain; candidates mean nothing to it")
    if question.post_processing:
        from ldp.consistency import consistent  # needs scipy, which takes longer to load than a node

        assert isinstance(mechanism, FrequencyOracle)
        estimate = consistent(estimate, mechanism, question.post_processing)
    counts, variances = estimate.counts, estimate.variances
    if not 0 < question.most < len(counts):
        return Answer("counts", None, counts, variances, fresh=fresh)
    codes = np.argsort(-counts, kind="stable")[: question.most]
    return Answer("counts", codes, counts[codes], variances[codes], fresh=fresh)


def _released(snapshot: Snapshot, question: Question, mechanism: Mechanism[Any]) -> Answer:
    """What continual release has published, in counts of the reports that it was published from.

    Those of the round itself may be others, which decided whether to publish, or none at all.
    """
    assert isinstance(mechanism, FrequencyOracle)
    release = release_of(snapshot.stored.result)
    scale = release.reports or max(len(snapshot.aggregator), 1)
    estimate = Estimate(mechanism.domain, scale, release.frequencies * scale, release.variances * scale**2)
    return replace(_counted(estimate, mechanism, question, fresh=release.fresh), of=scale)


def _decoded(counts: BloomCounts, question: Question, domain: Domain | None) -> Answer:
    if question.post_processing:
        raise ConfigurationError("what RAPPOR decodes is not negative already; leave out the post-processing")
    likely: Sequence[str] = question.candidates or (domain.labels if domain is not None else None) or ()
    if not likely:
        raise ConfigurationError("RAPPOR's reports are decoded for texts that are looked for; give candidates")
    if len(likely) > MAX_CANDIDATES:
        raise ConfigurationError(f"RAPPOR decodes {MAX_CANDIDATES:,} candidates at most, not {len(likely):,}")
    if len(likely) * counts.mechanism.cohorts > MAX_FILTERS:
        raise ConfigurationError(
            f"{len(likely):,} candidates in {counts.mechanism.cohorts:,} cohorts are too many to decode; name fewer"
        )
    from ldp.rappor.decode import decode  # needs scipy

    decoded = decode(counts, likely)
    order = np.argsort(-decoded.counts, kind="stable")[: question.most or None].tolist()
    rows = [
        (decoded.candidates[each], float(decoded.counts[each]) / counts.n, float(decoded.deviations[each]) / counts.n)
        for each in order
    ]
    return Answer("found", found=tuple(rows))


def _prefixes(mechanism: PrefixHashing, estimate: Estimate, most: int) -> list[HeavyHitter]:
    """The best strings of a search so far: values in its last round, else their beginnings."""
    strings, whole = mechanism.strings, mechanism.stop == mechanism.strings.bits
    return [
        HeavyHitter(strings.decode(prefix) if whole else beginning(strings, prefix, mechanism.stop), share, deviation)
        for prefix, share, deviation in mechanism.found(estimate, most)
    ]


def beginning(strings: Strings, prefix: int, length: int) -> str:
    """A prefix for people: the characters of a text, or the bits of a number, then the bits that are left, and `…`."""
    if not isinstance(strings, Texts):
        return f"{prefix:0{length}b}…"
    size, rest = divmod(length, 8)
    data = (prefix >> rest).to_bytes(size, "big")
    text, ended, _ = data.partition(b"\0")
    if ended:
        return text.decode(errors="replace")
    bits = f"+{prefix & (1 << rest) - 1:0{rest}b}" if rest else ""
    return f"{text.decode(errors='replace')}{bits}…"


def _found(hitters: Sequence[HeavyHitter]) -> Answer:
    return Answer("found", found=tuple((str(each.value), each.frequency, each.deviation) for each in hitters))


def _check_raw(question: Question, mechanism: Mechanism[Any]) -> None:
    if question.post_processing:
        raise ConfigurationError(f"post-processing is for counts of a known domain, which {mechanism.name} has not")
    if question.candidates:
        raise ConfigurationError(f"{mechanism.name} looks for no candidates; leave them out")
