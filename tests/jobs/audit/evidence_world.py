"""Runs of a verified comparison in which a party breaks a rule, and what convicts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from jobs.audit.evidence import EvidenceDocument
from link.pki.trust import Trust
from link.transcripts.words import Evidence
from protos.v1.link_pb2 import Frame
from protos.v1.verified_pb2 import DealtCommitments, DealtKey
from tests.crypto.protocols.replicated.deviating_world import AUTHORITY, Ends
from tests.crypto.protocols.replicated.test_verified_sums import ATTACKED, other_counts_for

TRUST = Trust(AUTHORITY.certificate_pem)
Alter = Callable[[Frame], list[Frame]]


def altering(kind: type[Any], change: Callable[[Any], None], to: str = "") -> Alter:
    """Changes messages of a kind in the batch of counts."""

    def alter(frame: Frame) -> list[Frame]:
        changed = Frame()
        changed.CopyFrom(frame)
        if frame.type == kind.DESCRIPTOR.full_name and "/decide" in frame.lane and to in ("", frame.receiver):
            message = kind.FromString(frame.body)
            change(message)
            changed.body = message.SerializeToString()
        return [changed]

    return alter


def flip(field: str) -> Callable[[Any], None]:
    def change(message: Any) -> None:
        value = getattr(message, field)
        setattr(message, field, bytes([value[0] ^ 1]) + value[1:])

    return change


def cut(field: str) -> Callable[[Any], None]:
    return lambda message: setattr(message, field, getattr(message, field)[:-1])


CASES: Mapping[str, tuple[str, Alter, str]] = {  # who deviates and how, and the rule
    "two dealings": ("west", other_counts_for("south"), "equivocation"),
    "another key": ("west", altering(DealtKey, flip("key"), "east"), "dealing"),
    "short key": ("west", altering(DealtKey, cut("key"), "north"), "malformed"),
    "short commitments": ("west", altering(DealtCommitments, cut("commitments")), "malformed"),
}


@cache
def ends_of(case: str) -> Ends:
    deviating, alter, _ = CASES[case]
    return ATTACKED[4].attacked([deviating], alter, 5)


def convicting(ends: Ends) -> Iterator[tuple[str, Evidence, EvidenceDocument]]:
    """By party, the evidence that holds."""
    for name, collected in ends.evidence.items():
        for evidence in collected:
            yield name, evidence, EvidenceDocument.of(evidence)


@cache
def file_of(case: str) -> str:
    """Evidence as JSON."""
    found = (document for _, _, document in convicting(ends_of(case)) if document.rule == CASES[case][2])
    return next(found).model_dump_json(by_alias=True)
