"""Every error comine can meet, as one tree.

ComineError
├── UsageError                  2   the command line was wrong
├── ConfigurationError         10   configuration, versions or resources of this machine
│   ├── InputDataError         10   a data file is missing, corrupt or in the wrong format
│   ├── VersionMismatch        10   peers run versions that do not understand each other
│   ├── ResourceError          10   a full disk, a port in use, too little memory
│   └── OverLimit              10   some party's data are over a limit of the job, and nobody learns whose
├── PeerError                  20   a peer could not be reached or was lost
│   └── IdentityError          20   a certificate is missing, expired, foreign or names someone else
├── PolicyDenied               30   a party's policy refuses the job
├── ResultWithheld             30   a party's people do not release what a job has found
├── ProtocolViolation          40   a peer broke the rules of the protocol
│   ├── UnexpectedMessage      40   a message of the wrong type, order or sender
│   ├── MalformedMessage       40   a message that does not hold what its type promises
│   ├── LimitExceeded          40   a peer sent more than the protocol allows
│   └── UndeclaredDisclosure   40   something would leave that the statement does not declare
├── JobCancelled               50   somebody cancelled the job
│   └── CancelledByOwner       50   the people of a party cancelled it there, for good
├── DeadlineExceeded           60   a wait ended without the awaited message
└── InternalError              70   a fault in comine itself

Each class has a stable `code` with a page under `docs/errors`, and the exit code of the process that ends with it.
The message is one sentence for a person: what happened, where, and what to do.

While a job has a party's rows, what an error says may depend on them, and who proposes jobs could choose what it
reveals. So others get only what `outward` lets through: errors that are about peers and the network, and those that are
marked by `shareable`. All others become one of three fixed sentences; what they say stays in the party's own log.

No sentence that leaves a node, with a job or without, names a file, a folder or a database of it: `placeless`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final, TypeVar


class ComineError(Exception):
    """Base of all errors that comine raises on purpose.

    Args:
        message: One sentence for a person: what, where, what to do. It may cross the wire, so it holds no data values.
        party: The party at which the error arose, where that is known.

    Attributes:
        about_peers: Whether errors of the class are about messages, peers, time and cancelling, never about the rows
            of the party at which they arise.
        accuses: Whether the party of errors of the class is who broke a rule, not where they arose; without a party,
            nobody knows who it was.
        shareable: Whether the sentence of this one may leave a party while a job has its rows; see `shareable`.
        reporter: The peer by whose word this party has it; None where it arose here. For this party's own logs: who may
            have lied, or passed on a lie.

    Example:
        >>> try:
        ...     comine.load_model("nowhere")
        ... except comine.ComineError as error:
        ...     print(error.code, error.exit_code, error.message)
        E101 10 the model nowhere cannot be read: No such file or directory
    """

    code: ClassVar[str] = "E700"
    exit_code: ClassVar[int] = 70
    about_peers: ClassVar[bool] = False
    accuses: ClassVar[bool] = False

    def __init__(self, message: str, *, party: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.party = party
        self.shareable = False
        self.reporter: str | None = None

    def at(self, party: str) -> ComineError:
        """This error, as one that arose at `party` where it names no party."""
        if self.party is not None or self.shareable:  # what is the same at all parties names none
            return self
        message = self.message if party in self.message else f"{party}: {self.message}"
        named = type(self)(message, party=None if self.accuses else party)
        named.__cause__ = self
        return named

    def blamed(self, me: str) -> str:
        """The party whose error this is where it ended a job at `me`; nobody's where all met it alike or none knows."""
        return self.party or ("" if self.shareable or self.accuses else me)


class UsageError(ComineError):
    """The command line was wrong."""

    code = "E001"
    exit_code = 2


class ConfigurationError(ComineError):
    """A configuration or job file is wrong."""

    code = "E100"
    exit_code = 10


class InputDataError(ConfigurationError):
    """A data source is missing, corrupt or not in the declared format."""

    code = "E101"


class VersionMismatch(ConfigurationError):
    """Two nodes run versions, suites or job files that differ."""

    code = "E102"
    about_peers = True


class ResourceError(ConfigurationError):
    """This machine lacks something: disk space, a free port, memory."""

    code = "E103"


class OverLimit(ConfigurationError):
    """Some party's data are over a limit of the job; it is opened to all that it is so, and to nobody whose they are.

    It has no party, nor do counts of such errors reveal whose data it was.
    """

    code = "E104"


class PeerError(ComineError):
    """A peer could not be reached or was lost."""

    code = "E200"
    exit_code = 20
    about_peers = True


class IdentityError(PeerError):
    """A certificate is missing, expired, foreign, or names somebody else."""

    code = "E201"


class PolicyDenied(ComineError):
    """A party's policy refuses the job."""

    code = "E300"
    exit_code = 30


class ResultWithheld(ComineError):
    """The people of a party do not release what a job has found; why, they need not say."""

    code = "E301"
    exit_code = 30
    about_peers = True


class ProtocolViolation(ComineError):
    """A peer broke the rules of the protocol; never retried."""

    code = "E400"
    exit_code = 40
    about_peers = True
    accuses = True


class UnexpectedMessage(ProtocolViolation):
    """A message of the wrong type, order or sender."""

    code = "E401"


class MalformedMessage(ProtocolViolation):
    """A message that does not hold what its type promises."""

    code = "E402"


class LimitExceeded(ProtocolViolation):
    """A peer sent more than the protocol allows."""

    code = "E403"


class UndeclaredDisclosure(ProtocolViolation):
    """Something would leave this party that the job's statement does not declare."""

    code = "E404"
    accuses = False


class JobCancelled(ComineError):
    """Somebody cancelled the job."""

    code = "E500"
    exit_code = 50
    about_peers = True


class CancelledByOwner(JobCancelled):
    """The people of a party cancelled the job at their node; it does not go on in another attempt."""

    code = "E501"


class DeadlineExceeded(ComineError):
    """A wait ended without the awaited message."""

    code = "E600"
    exit_code = 60
    about_peers = True


class InternalError(ComineError):
    """A fault in comine itself."""


def _tree(cls: type[ComineError]) -> list[type[ComineError]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in _tree(sub))]


BY_CODE: dict[str, type[ComineError]] = {cls.code: cls for cls in _tree(ComineError)}


def from_code(code: str, message: str, *, party: str | None = None) -> ComineError:
    """Rebuild an error that crossed the wire; an unknown code becomes an `InternalError`."""
    return shareable(BY_CODE.get(code, InternalError)(message, party=party))


def from_reporter(code: str, message: str, named: str, reporter: str) -> ComineError:
    """Rebuilds an error that ended a job, as a party reported it.

    Args:
        code: Of the error.
        message: Its sentence.
        named: The party that it is about; empty where it is nobody's, as only a wrong job, too much data or a broken
            rule can be.
        reporter: Who reported it; all other faults are its own, and so is a report without a known code.
    """
    kind = BY_CODE.get(code)
    if kind is None:
        return MalformedMessage(f"{reporter} reports an error without a known code; check its version", party=reporter)
    nobodys = issubclass(kind, ProtocolViolation) or (
        issubclass(kind, ConfigurationError) and not (kind.about_peers or issubclass(kind, ResourceError))
    )
    return from_code(code, message or f"{reporter} gives no reason", party=named or (None if nobodys else reporter))


def mentions_others(error: ComineError, reporter: str, parties: Iterable[str]) -> bool:
    """Whether the sentence of an error that a party reports names another one of these."""
    others = [re.escape(party) for party in parties if party != reporter]
    pattern = rf"(?<![\w.-])({'|'.join(others)})(?![\w-])"
    return bool(others) and re.search(pattern, error.message, re.IGNORECASE) is not None


def told_by(reporter: str, error: ComineError, party: str | None) -> ComineError:
    """An error as the word of who reports it: its sentence begins with that party, or names it before.

    Args:
        reporter: Who reported it.
        error: As reported.
        party: Whom it names from now on.
    """
    begins = re.match(rf"(\S+ and )?{re.escape(reporter)}[: ]", error.message) is not None
    told = from_code(error.code, error.message if begins else f"{reporter} says: {error.message}", party=party)
    told.reporter = error.reporter
    return told


_E = TypeVar("_E", bound=ComineError)


def shareable(error: _E) -> _E:
    """Marks an error whose sentence may leave a party while a job has its rows.

    It follows from what all parties of the job know, which is the specification and what was opened to all, or from
    something in which rows have no part, such as a disk. docs/what-errors-reveal.md lists each place that says so, and
    why; a test holds the list.
    """
    error.shareable = True
    return error


# A node's files have absolute paths, since its configuration makes them such, and its databases URLs.
_PLACE: Final = re.compile(r"(?<![\w.\])])(?:~?/|\\\\|[A-Za-z]:[\\/])\S|\b[A-Za-z][A-Za-z0-9+.-]*://")
_NAMES: Final = "comine://"  # begins the names in certificates, which are no places


def placeless(error: ComineError, me: str) -> ComineError:
    """An error as others see it: one that names a place on this machine becomes a fixed sentence of its class.

    A path reveals the user, the folders and the software of a machine, and what the files of data are called. Why
    a job was cancelled is reported as it is: who gave the reason chose the words.

    Args:
        error: As it arose.
        me: This party.
    """
    if isinstance(error, JobCancelled) or not _PLACE.search(error.message.replace(_NAMES, "")):
        return error.at(me)
    sentence = f"{me} met a problem with a file or a database of its own; the log of {me} has the reason"
    shown = type(error)(sentence, party=error.party or me)
    shown.shareable, shown.reporter, shown.__cause__ = error.shareable, error.reporter, error
    return shown


def outward(error: ComineError, me: str) -> ComineError:
    """What peers and coordinators see of an error that ended a job while it had this party's rows.

    Args:
        error: As it arose.
        me: This party.
    """
    if error.shareable or error.about_peers:
        return placeless(error, me)
    if isinstance(error, InternalError):
        return InternalError(f"{me} met a fault of its own; the log of {me} has the details", party=me)
    if isinstance(error, ResourceError):
        return ResourceError(f"{me} lacks disk space or memory for this job; the log of {me} has the reason", party=me)
    return InputDataError(f"{me} cannot take part in this job with its data; the log of {me} has the reason", party=me)
