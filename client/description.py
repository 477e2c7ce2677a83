"""What a service announces of a collection, read with distrust: what it asks for, and when its rounds are open."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple

from crypto.primitives.hashing import encode_labels
from ldp.budget import float_below
from ldp.documents import mechanism_of
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending, PrefixHashing
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Mechanism
from ldp.streams import allocation
from ldp.streams.sampled import Sampled
from link.errors import ConfigurationError, InputDataError, MalformedMessage
from link.files.json_text import read_json
from link.files.quantities import seconds
from protos.v1.frequency_pb2 import CLOSED
from protos.v1.frequency_pb2 import Collection as Announced

ID_BYTES: Final = 16
MAX_REPORT_BYTES: Final = 1 << 20

_LARGEST: Final = 1 << 53  # of numbers of rounds, periods and steps: more do not fit a second each
_DIGITS: Final = 100  # of a number in a specification
_DIVIDING: Final = frozenset({"lpu", "lpd", "lpa"})
_SHARE: Final = re.compile(r"[0-9]{1,18}(/[0-9]{1,18})?")  # no exponents, whose numbers would fill the memory


@dataclass(frozen=True, slots=True)
class Round:
    """A time in which reports of one mechanism are taken; see `Round` of the protocol."""

    number: int
    period: int
    step: int
    opens: float
    closes: float
    mechanism: bytes
    fingerprint: bytes
    share: Fraction
    purpose: str

    @property
    def digest(self) -> bytes:
        """Of what may not change once it is announced."""
        terms = (self.period, self.step, self.mechanism, self.fingerprint, str(self.share), self.purpose)
        return hashlib.sha256(encode_labels(*terms)).digest()


class Span(NamedTuple):
    """What a client may spend within some windows in a row.

    Attributes:
        steps: How many windows.
        epsilon: All that is charged within them, at most.
    """

    steps: int
    epsilon: Fraction


@dataclass(frozen=True)
class Description:
    """A collection as its service announces it.

    Attributes:
        node: The party whose node this is.
        name: The collection's.
        id: 16 bytes.
        spec: Its specification.
        closed: Whether it takes no more reports.
        created: Unix seconds.
        domain_digest: Of the labels; empty where values are numbers or open texts.
        rounds: Those that were open, the earliest first.
        digest: Of what may not change once it is announced.
        now: The node's time when it sent this, in Unix seconds; 0 where it did not say.
    """

    node: str
    name: str
    id: bytes
    spec: Mapping[str, Any]
    closed: bool
    created: float
    domain_digest: bytes
    rounds: tuple[Round, ...]
    digest: bytes
    now: float

    @classmethod
    def read(cls, data: bytes, node: str, name: str) -> Description:
        """Reads what a service sent.

        Args:
            data: The serialised `Collection`.
            node: The party that sent it.
            name: The collection that was asked for.

        Raises:
            MalformedMessage: It is not what the protocol promises.
        """
        try:
            sent = Announced.FromString(data)
            spec = read_json(sent.spec)
            rounds = tuple(map(_round, sent.rounds))
            found = cls(
                *(node, sent.name, sent.id, spec, sent.state == CLOSED, sent.created, sent.domain_digest, rounds),
                hashlib.sha256(encode_labels(sent.spec, repr(sent.created), sent.domain_digest)).digest(),
                sent.now,
            )
            found.check()
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
            ConfigurationError,
        ):
            raise _malformed(node, name) from None
        except Exception as error:  # protobuf has an error of its own
            if type(error).__name__ != "DecodeError":
                raise
            raise _malformed(node, name) from None
        if found.name != name:
            raise MalformedMessage(f"{node} was asked for '{name}' and described another collection", party=node)
        return found

    def check(self) -> None:
        """Computes what depends on the specification, so that a wrong one fails here.

        Raises:
            Exception: One of those that malformed data makes Python raise.
        """
        if (
            len(self.id) != ID_BYTES
            or not math.isfinite(self.created + self.now)
            or len(self.domain_digest) not in (0, 32)
        ):
            raise ValueError
        if not self.epsilon > 0 or (self.window_s is not None and self.window_s <= 0) or self.start != self.start:
            raise ValueError
        if self.divides_clients and self.protected is None:
            raise ValueError
        if self.protected is not None and (self.window_s is None or not 1 <= self.protected <= _LARGEST):
            raise ValueError
        if self.spec["collection"]["mechanism"] == "prefix-extending":
            assert self.search is not None
        shares = self.budgets is not None or self.memo is not None
        if shares and (self.window_s is None or self.protected is not None):
            raise ValueError
        if self.memo is not None and not (1 <= self.memo.steps <= _LARGEST and self.memo.epsilon > 0):
            raise ValueError
        if self.sampling is not None and not 0 < self.sampling < 1:
            raise ValueError

    # -- what the specification says ----------------------------------------------------------------------------------
    @cached_property
    def epsilon(self) -> Fraction:
        """The ε that its creator chose: of one report, or of all within a window of continual release."""
        return Fraction(float(self.spec["collection"]["epsilon"]))

    @cached_property
    def window_s(self) -> int | None:
        """The length of a round or step in seconds; None where one round stays open."""
        window = self.spec.get("window")
        return None if window is None else seconds(window["length"])

    @cached_property
    def start(self) -> float:
        """When the first round begins, in Unix seconds."""
        window = self.spec.get("window")
        given = None if window is None else window.get("start")
        return self.created if given is None else dt.datetime.fromisoformat(given).timestamp()

    @cached_property
    def protected(self) -> int | None:
        """W of continual release: how many steps are protected together; None where there is none."""
        continual = self.spec.get("continual")
        return None if continual is None else int(continual["w"])

    @cached_property
    def divides_clients(self) -> bool:
        """Whether each step of continual release asks a share of the clients, each for all of ε."""
        continual = self.spec.get("continual")
        return continual is not None and continual["method"] in _DIVIDING

    @cached_property
    def search(self) -> PrefixExtending | None:
        """The search in several rounds of which a client reports in one; None where it is none."""
        collection = self.spec["collection"]
        if collection["mechanism"] != "prefix-extending":
            return None
        texts = collection.get("text_bytes")
        strings = Integers(collection["integer_bits"]) if texts is None else Texts(texts)
        given = {name: int(value) for name, value in collection.get("parameters", {}).items()}
        return PrefixExtending(strings, float(self.epsilon), collection["k"], **given)

    @cached_property
    def budgets(self) -> tuple[Fraction, ...] | None:
        """ε of a report in each round, where a series divides the collection's ε among them; None where there is none.

        They are computed here from the series itself, so that the service cannot ask for more.
        """
        section = self.spec.get("budget")
        if section is None:
            return None
        ratio, exponent = (None if section[name] is None else float(section[name]) for name in ("ratio", "exponent"))
        return allocation.budgets(
            section["series"],
            self._total,
            self.spec["window"].get("periods"),
            ratio=ratio,
            exponent=exponent,
            errors=tuple(map(float, section["errors"] or ())),
        )

    @cached_property
    def sampling(self) -> Fraction | None:
        """The secret probability with which a report is of the client's value; None where all are."""
        section = self.spec.get("sampling")
        if section is None:
            return None
        if _SHARE.fullmatch(section["probability"]) is None:
            raise ValueError
        return Fraction(section["probability"])

    @cached_property
    def memo(self) -> Span | None:
        """What answers to new values may spend, where they are kept and wait for their turn; None where they do not."""
        section = self.spec.get("memo")
        return None if section is None else Span(int(section["w"]), Fraction(_below(section["epsilon"])))

    @cached_property
    def ledger(self) -> Span | None:
        """What all reports to the collection may spend within some steps; None where only the device limits them."""
        if self.protected is not None:
            return Span(self.protected, self.epsilon)
        return None if self.budgets is None else Span(len(self.budgets), Fraction(self._total))

    @property
    def _total(self) -> float:
        return _below(self.spec["collection"]["epsilon"])

    # -- rounds -------------------------------------------------------------------------------------------------------
    def open_round(self, now: float) -> Round | None:
        """The round in which a report that is made now belongs, as far as is known; None where there is none.

        Rounds that follow each other with the same mechanism are computed from the last one that was announced. Of a
        series of budgets, each round has its own mechanism, so only those that were announced are known.
        """
        begun = [each for each in self.rounds if each.opens <= now]
        if self.closed or not begun:
            return None
        latest, length = begun[-1], self.window_s
        if length is None or self.protected is not None or self.search is not None:
            return latest if not latest.closes or now < latest.closes else None
        later = int((now - latest.opens) // length)
        if self.budgets is not None:
            return None if later else latest
        periods = self.spec["window"].get("periods")
        if periods is not None and latest.number + later >= periods:
            return None
        return replace(
            latest,
            number=latest.number + later,
            period=latest.period + later,
            step=latest.step + later,
            opens=latest.opens + later * length,
            closes=latest.closes + later * length,
        )

    def mechanism(self, asked: Round, domain: Domain | None) -> Mechanism[Any]:
        """The mechanism of a round, if the service asks for no more than the collection's creator did.

        Args:
            asked: The round.
            domain: The labelled domain, where there is one.

        Raises:
            MalformedMessage: It is unknown, has another fingerprint or reports beyond 1 MiB, spends more, is not
                sampled as promised, keeps no answers where it should, or is no round of the search.
        """
        where = f"round {asked.number} of '{self.name}'"
        try:
            found = mechanism_of(asked.mechanism, domain)
        except InputDataError as error:
            raise MalformedMessage(f"{self.node} announced {where} wrongly: {error.message}", party=self.node) from None
        if found.fingerprint != asked.fingerprint:
            raise MalformedMessage(
                f"{self.node} announced {where} with a fingerprint of another mechanism; this device does not report",
                party=self.node,
            )
        if found.report_bytes > MAX_REPORT_BYTES:
            raise MalformedMessage(
                f"{self.node} asks in {where} for reports of {found.report_bytes:,} bytes; this device sends "
                f"{MAX_REPORT_BYTES:,} at most",
                party=self.node,
            )
        most = self._most(asked)
        if Fraction(found.epsilon) > most:
            raise MalformedMessage(
                f"{self.node} asks in {where} for an epsilon of {found.epsilon:g}, and the collection is for "
                f"{float(most):g} at most; this device does not report",
                party=self.node,
            )
        if self.sampling is not None and not (isinstance(found, Sampled) and found.probability == self.sampling):
            raise MalformedMessage(
                f"{self.node} announced {where} without the sampling that the collection promises; this device does "
                "not report",
                party=self.node,
            )
        if self.memo is not None and not isinstance(found, MemoisedMechanism):
            raise MalformedMessage(
                f"{self.node} announced {where} by a mechanism that keeps no answers, as the collection promises; this "
                "device does not report",
                party=self.node,
            )
        if self.search is not None and not _belongs(found, self.search, asked.number % self.search.groups):
            raise MalformedMessage(
                f"{self.node} announced {where} with prefixes that are none of its search; this device does not report",
                party=self.node,
            )
        return found

    def _most(self, asked: Round) -> Fraction:
        """ε that a report of a round may have."""
        if self.budgets is None:
            return self.epsilon
        # A round of another number than its period or step could be asked for twice.
        if not asked.number == asked.period == asked.step < len(self.budgets):
            raise MalformedMessage(
                f"{self.node} announced round {asked.number} of '{self.name}' out of the order of its budgets; this "
                "device does not report",
                party=self.node,
            )
        return self.budgets[asked.number]

    def ahead(self, asked: Round, at: float) -> float | None:
        """By how many steps a round is before a client's clock; None where no steps are counted.

        Who notes the least of what this was may refuse a round that is ahead by over a step more: its steps outrun the
        clock (`outruns`), so that w of them would be over too soon.

        Args:
            asked: The round.
            at: The client's time in Unix seconds.
        """
        counted = self.protected is not None or self.memo is not None
        return asked.step - at / self.window_s if counted and self.window_s is not None else None

    def too_early(self, asked: Round) -> bool:
        """Whether a round claims a step of the ledger that cannot have begun by then; steps would be over too soon."""
        return self.window_s is not None and asked.step > (asked.opens - self.start) / self.window_s + 1e-6


def outruns(ahead: float, least: float) -> bool:
    """Whether steps go faster than the clock, by what `Description.ahead` is now and the least that it was."""
    return ahead > least + 1 + 1e-6  # a report may be made at any time within its step


def _round(sent: Any) -> Round:
    if max(sent.number, sent.period, sent.step) >= _LARGEST or not (math.isfinite(sent.opens + sent.closes)):
        raise ValueError
    share = Fraction(1)
    if sent.share:
        if _SHARE.fullmatch(sent.share) is None:
            raise ValueError
        share = Fraction(sent.share)
    if not 0 < share <= 1:
        raise ValueError
    return Round(
        *(sent.number, sent.period, sent.step, sent.opens, sent.closes, sent.mechanism, sent.fingerprint),
        *(share, sent.purpose),
    )


def _below(epsilon: str) -> float:
    """The ε of a specification as the service's mechanisms take it."""
    if not isinstance(epsilon, str) or len(epsilon) > _DIGITS:
        raise ValueError
    return float_below(Decimal(epsilon))


def _belongs(mechanism: Mechanism[Any], search: PrefixExtending, which: int) -> bool:
    """Whether a mechanism is that of a round of the search, whatever prefixes were kept."""
    if not isinstance(mechanism, PrefixHashing):
        return False
    start = search.lengths[which - 1] if which else 0
    return (mechanism.strings, mechanism.start, mechanism.stop) == (search.strings, start, search.lengths[which])


def _malformed(node: str, name: str) -> MalformedMessage:
    return MalformedMessage(f"what {node} sent of the collection '{name}' is no description of one", party=node)
