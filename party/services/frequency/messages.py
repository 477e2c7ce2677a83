"""What the frequency service is asked and answers, as messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from link.encoding.chunks import CHUNK_BYTES
from link.errors import ConfigurationError, LimitExceeded
from party.services.frequency.collection import Snapshot
from party.services.frequency.estimates import MAX_CANDIDATE_BYTES, Answer, Question
from party.services.frequency.storage.records import COUNTERS, Counters, StoredCollection, StoredRound
from protos.v1 import frequency_pb2 as pb


def round_of(stored: StoredRound, fingerprint: bytes) -> pb.Round:
    """A round, and the fingerprint of its mechanism."""
    return pb.Round(
        number=stored.number,
        period=stored.period,
        step=stored.step,
        opens=stored.opens,
        closes=stored.closes,
        mechanism=stored.mechanism,
        fingerprint=fingerprint,
        share=stored.share,
        purpose=stored.purpose,
    )


def counters_of(counters: Counters) -> pb.Counters:
    """What became of reports."""
    return pb.Counters(**{name: getattr(counters, name) for name in COUNTERS})


def collection_of(
    stored: StoredCollection,
    rounds: Iterable[pb.Round],
    *,
    closed: bool,
    ended: int,
    domain_digest: bytes,
    me: str,
    now: float,
) -> pb.Collection:
    """A collection as it stands, without its counters.

    Args:
        stored: As it is on disk.
        rounds: Those that take reports.
        closed: Whether no report is taken any more.
        ended: How many rounds have ended.
        domain_digest: Of its labels.
        me: This party.
        now: Unix seconds.
    """
    return pb.Collection(
        name=stored.name,
        id=stored.id,
        spec=stored.spec,
        state=pb.CLOSED if closed else pb.OPEN,
        creator=stored.creator,
        created=stored.created,
        rounds=rounds,
        rounds_ended=ended,
        domain_digest=domain_digest,
        node=me,
        now=now,
    )


def left_out_of(stored: StoredCollection, me: str) -> pb.Collection:
    """What is shown of a collection whose reports this version cannot read."""
    return pb.Collection(
        name=stored.name,
        id=stored.id,
        spec=stored.spec,
        state=pb.LEFT_OUT,
        creator=stored.creator,
        created=stored.created,
        node=me,
    )


def question_of(request: pb.FrequencyRequest) -> Question:
    """What a reader asks.

    Raises:
        LimitExceeded: It names more candidates than can be looked for.
        ConfigurationError: They are no text.
    """
    if len(request.candidates) > MAX_CANDIDATE_BYTES:
        raise LimitExceeded(f"candidates may take {MAX_CANDIDATE_BYTES >> 20} MiB together; name fewer")
    try:
        texts = request.candidates.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError("the candidates are not UTF-8 text") from None
    candidates = tuple(line for line in texts.split("\n") if line)
    return Question(int(request.most), request.post_processing, candidates)


def parts_of(collection: str, snapshot: Snapshot, found: Answer) -> list[pb.EstimatePart]:
    """The estimates of a round.

    Args:
        collection: Its name.
        snapshot: The reports, with counters as the reader may see them.
        found: Their estimates.
    """
    parts = [
        pb.EstimatePart(
            codes=b"" if piece.codes is None else piece.codes.astype("<u4").tobytes(),
            counts=piece.counts.astype("<f8").tobytes(),
            variances=piece.variances.astype("<f8").tobytes(),
            found=[pb.Found(value=value, frequency=share, deviation=far) for value, share, far in piece.found],
        )
        for piece in found.pieces()
    ]
    parts[0].head.CopyFrom(
        pb.EstimateHead(
            collection=collection,
            round=round_of(snapshot.stored, snapshot.mechanism.fingerprint),
            reports=len(snapshot.aggregator),
            values=len(found),
            final=snapshot.final,
            at=snapshot.at,
            counters=counters_of(snapshot.counters),
            fresh=found.fresh,
            kind=found.kind,
            of=found.of,
        )
    )
    parts[-1].last = True
    return parts


def cut(data: bytes) -> Iterator[bytes]:
    """Pieces that fit a message; none where there is nothing. Each is copied when it is sent, not all at once."""
    return (data[begin : begin + CHUNK_BYTES] for begin in range(0, len(data), CHUNK_BYTES))
