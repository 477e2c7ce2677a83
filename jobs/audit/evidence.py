"""Evidence against a party as a file, and its check on a machine that trusts the authority alone.

A file has the words of one party that break a rule of a protocol, with its signatures and certificate: see
`link.transcripts.words`, and `crypto.protocols.replicated.evidence` for the rules. All of it is bound by the
signatures, so whoever changes anything gets evidence that does not hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError, WithJsonSchema

from crypto.protocols.replicated.evidence import judged
from jobs.audit.conviction_events import EvidenceKept
from jobs.audit.events import Base64, Id
from jobs.documents.part import Part
from link.errors import ConfigurationError, IdentityError
from link.files.private_file import replace_private
from link.pki.trust import Trust
from link.transcripts.words import Evidence, Origin, Shown, Withheld, Words
from link.version import WINDOW

SCHEMA: Final = "comine.evidence/1"
MAX_BYTES: Final = 256 << 20  # of a file: a component of a large batch is in it

_Digest = Annotated[Id, WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{64}$"})]
_Octets = Annotated[Base64, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]


class ShownFrame(Part):
    """A message as the accused sent it."""

    type: str = Field(description="Full name of the message.")
    last: bool = Field(description="Whether it ends a stream.")
    round: int = Field(ge=0)
    body: _Octets


class WithheldFrame(Part):
    """What the signature covers of a message that is not shown."""

    header: _Digest = Field(description="SHA-256 of its header.")
    body: _Digest = Field(description="SHA-256 of its body.")


class SignedWords(Part):
    """All that the accused sent to one party on one lane, as far as it is shown."""

    receiver: str
    lane: str
    frames: list[ShownFrame | WithheldFrame] = Field(description="From the lane's first, in order.")
    signature: _Octets
    certificate: str = Field(description="PEM.")


class EvidenceDocument(Part):
    """A party's signed words that show that it broke a rule of a protocol."""

    schema_: Literal["comine.evidence/1"] = Field(alias="schema")
    accused: str
    rule: str
    job: _Digest
    attempt: Annotated[int, Field(ge=0)]
    spec_digest: _Digest = Field(description="SHA-256 of the job specification that the accused had agreed to.")
    session: _Digest
    wire: int = Field(ge=0, description="Version of the wire protocol.")
    words: list[SignedWords]

    @classmethod
    def of(cls, evidence: Evidence) -> EvidenceDocument:
        """Evidence that a session has collected."""
        origin = evidence.words[0].origin
        return cls(
            schema=SCHEMA,
            accused=origin.sender,
            rule=evidence.rule,
            job=origin.job,
            attempt=origin.attempt,
            spec_digest=origin.spec_digest,
            session=origin.session,
            wire=origin.wire,
            words=[_words(each) for each in evidence.words],
        )

    def as_words(self) -> list[Words]:
        """The words as they are checked."""
        return [
            Words(
                Origin(
                    self.session,
                    self.job,
                    self.attempt,
                    self.spec_digest,
                    self.wire,
                    self.accused,
                    each.receiver,
                    each.lane,
                ),
                tuple(
                    Shown(frame.type, frame.last, frame.round, frame.body)
                    if isinstance(frame, ShownFrame)
                    else Withheld(frame.header, frame.body)
                    for frame in each.frames
                ),
                each.signature,
                each.certificate.encode(),
            )
            for each in self.words
        ]

    def judged(self, trust: Trust) -> str:
        """What the accused is convicted of.

        Args:
            trust: Whom the reader trusts.

        Returns:
            What it did, in words.

        Raises:
            ValueError: It does not hold; why not.
        """
        if not WINDOW.oldest <= self.wire <= WINDOW.latest:
            raise ValueError(
                f"it is of version {self.wire} of the wire protocol, whose rules this release does not know"
            )
        words = self.as_words()
        for each in words:
            try:
                each.check(trust)
            except (IdentityError, ValueError, OverflowError) as error:
                why = error.message if isinstance(error, IdentityError) else str(error)
                raise ValueError(f"its words are not shown to be those of {self.accused}: {why}") from None
        return judged(self.rule, words)


def read_evidence(path: Path) -> EvidenceDocument:
    """Reads a file of evidence.

    Raises:
        ConfigurationError: It cannot be read, or is none.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigurationError(f"{path} has more than {MAX_BYTES} bytes, so it is no evidence; check the path")
        return EvidenceDocument.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:
        why = "it is no JSON"
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            why = f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
        raise ConfigurationError(f"{path} is no evidence of the schema {SCHEMA} ({why}); check the path") from None


@dataclass(frozen=True, slots=True)
class EvidenceFolder:
    """Where a node keeps evidence: a file for each job.

    Attributes:
        path: The folder, which is made when it is needed.
        trust: Whom the node trusts.
    """

    path: Path
    trust: Trust

    def keep(self, evidence: Sequence[Evidence]) -> EvidenceKept | None:
        """Writes the first evidence that convicts anybody.

        Args:
            evidence: What a session has collected. What it holds against rules of its job alone, which nobody can judge
                without the job's parameters, convicts nobody.

        Returns:
            What the audit log records; None where nothing was written.

        Raises:
            OSError: The file cannot be written.
        """
        for each in evidence:
            document = EvidenceDocument.of(each)
            try:
                document.judged(self.trust)
            except ValueError:
                continue
            data = (document.model_dump_json(by_alias=True, indent=2) + "\n").encode()
            self.path.mkdir(mode=0o700, exist_ok=True)
            replace_private(self.path / f"{document.job.hex()}.json", data)
            return EvidenceKept(
                job=document.job,
                session=document.session,
                accused=document.accused,
                rule=document.rule,
                sha256=hashlib.sha256(data).digest(),
            )
        return None


def _words(words: Words) -> SignedWords:
    return SignedWords(
        receiver=words.origin.receiver,
        lane=words.origin.lane,
        frames=[
            ShownFrame(type=frame.type, last=frame.last, round=frame.round, body=frame.body)
            if isinstance(frame, Shown)
            else WithheldFrame(header=frame.header, body=frame.body)
            for frame in words.frames
        ],
        signature=words.signature,
        certificate=words.certificate.decode(),
    )
