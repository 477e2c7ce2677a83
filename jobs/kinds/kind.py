"""What a kind of job is: all that the rest of comine asks of one, and nothing that names one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from jobs.kinds.finding import Finding
from jobs.kinds.key import Key
from jobs.privacy_account import Charge, PrivacyTerms
from jobs.spec.job import JobSpec
from mining.joint.hybrid.spool_limits import DEFAULT_SPOOL_LIMITS, SpoolLimits

if TYPE_CHECKING:
    from crypto.protocols.products.outside_dealer import Dealings
    from jobs.data import Data, DataKind
    from jobs.plan.answer import Answer
    from jobs.plan.plan import Plan
    from jobs.results.outcome import Outcome
    from link.disclosure import Declared, Learned
    from link.journal import Journal
    from link.session import Session
    from mining.joint.parameters import HorizontalMining

Facet = Literal["itemsets", "model", "release", "rows in common", "column groups", "other"]
"""What a job opens, in the words of policies; "other" is for kinds of other distributions alone."""

ALL: Final = frozenset({"*"})
EXACT: Final = Charge("exact", None, None, None)


@dataclass(frozen=True, slots=True)
class Resources:
    """What a party lends the run of a job.

    Attributes:
        least_count: Its own floor: it takes no part where fewer transactions make an itemset frequent.
        dealings: What it has of the dealer, where the coordinator deals randomness.
        journal: What it keeps of the job, where that can go on after a failure.
        spool_limits: What sealed reports and rows of others may take, where it shuffles them.
        list_limits: What lists of ids may take, where rows are aligned.
    """

    least_count: int = 1
    dealings: Dealings | None = None
    journal: Journal | None = None
    spool_limits: SpoolLimits = DEFAULT_SPOOL_LIMITS
    list_limits: ScratchLimits = IN_MEMORY


NO_RESOURCES: Final = Resources()


class Disclosure(NamedTuple):
    """What a job of a kind discloses by its own design, beside what any job does.

    Attributes:
        result: What its recipients get, in words.
        progress: What the coordinator sees while it runs.
        declared: Every label under which something may be opened.
        learned: Who learns what.
        collusion: Which parties may work together without learning more, in words.
        worst: The worst that some of them could find out together, or one alone, in plain words.
        beyond: What keeps all promises and may still reveal something.
    """

    result: str
    progress: Learned
    declared: tuple[Declared, ...]
    learned: tuple[Learned, ...]
    collusion: str
    worst: str
    beyond: tuple[str, ...] = ()


class Unions(NamedTuple):
    """The unions and alignments of a job.

    Attributes:
        taken: Whether the job may take a union.
        key: Of the job file, that bounds their lists.
        bound: What the job sets there; None where it sets none.
        squared: Whether the work of one that it may take grows with the square of the number of parties.
        otherwise: What the job can take so that it takes no such union.
    """

    taken: bool
    key: str = "[union] bound"
    bound: int | None = None
    squared: bool = True
    otherwise: str = "a catalogue"


class Kind(ABC):
    """One kind of job, and all that is particular to it. Its package names the keys by which jobs are of it.

    Attributes:
        specification: The model of its job files; a model derived from `JobSpec` where the kind has a table of its own.
        computation: The module whose function `run` is one party's part. It is loaded where a job runs: coordinators,
            who load kinds too, compute nothing. A kind may have a method `run` instead.
        planning: The module whose function `estimate` plans a job, loaded where one is planned; or it has the method.
        data: The kind of data that parties bring.
        in_blocks: Whether parties' rows may lie in blocks, as `mining.data.rows.Rows` or
            `mining.data.table_rows.TableRows`; otherwise they are in memory. See `takes_blocks`.
        estimates: Whether what it finds are estimates, with intervals.
        perturbs: Whether records are perturbed where they are, and reported to the analyst of the job.
        noisy_rows: Whether the number of rows has noise, too.
        finding: What it finds; None where it finds nothing but numbers of rows.
    """

    specification: ClassVar[type[JobSpec]] = JobSpec
    computation: ClassVar[str]
    planning: ClassVar[str]
    data: ClassVar[DataKind]
    in_blocks: ClassVar[bool] = False
    estimates: ClassVar[bool] = False
    perturbs: ClassVar[bool] = False
    noisy_rows: ClassVar[bool] = False
    finding: ClassVar[type[Finding] | None]

    def template(self, key: Key, parties: tuple[str, ...]) -> str:
        """The commented tables of a new job, `[job]` apart, for `comine job new`; empty of a kind that writes none.

        Args:
            key: One of its own.
            parties: Of the job, two or more.
        """
        return ""

    def takes_blocks(self, spec: JobSpec) -> bool:
        """Whether parties' rows may lie in blocks for this job."""
        return self.in_blocks

    @abstractmethod
    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        """By table of a job file, `[job]` apart, the keys that mean something; `ALL` of them, or nothing of others."""

    @abstractmethod
    def check(self, spec: JobSpec) -> None:
        """Refuses a job that cannot run, or says what nothing would keep to.

        Raises:
            ConfigurationError: With the reason.
            InputDataError: A hierarchy is wrong.
        """

    async def run(self, session: Session, spec: JobSpec, data: Data, resources: Resources) -> Outcome:
        """Runs one party's part.

        Raises:
            ConfigurationError: The data are not of the kind that the job needs.
            ComineError: The job failed, as its protocols say.
        """
        outcome: Outcome = await import_module(self.computation).run(session, spec, data, resources)
        return outcome

    @abstractmethod
    def disclosure(self, spec: JobSpec) -> Disclosure:
        """What a job discloses, from its specification alone."""

    def estimate(
        self, spec: JobSpec, answers: Mapping[str, Answer], latency_s: float, *others: str, compare: bool
    ) -> Plan:
        """What a job will cost and disclose; arguments as in `jobs.plan.estimate`."""
        plan: Plan = import_module(self.planning).estimate(spec, answers, latency_s, *others, compare=compare)
        return plan

    @abstractmethod
    def charge(self, spec: JobSpec) -> Charge:
        """The most that a job may cost a record."""

    def charge_written(self, privacy: PrivacyTerms) -> Charge:
        """The most that a job with such a [privacy] table may have cost, whatever else another version wrote of it.

        Raises:
            ValueError: The table does not say it.
            ArithmeticError: A number of it is none.
            KeyError: It lacks one.
        """
        raise ValueError("what such jobs cost is not in their [privacy] table alone")

    @abstractmethod
    def facets(self, spec: JobSpec) -> frozenset[Facet]:
        """What a job opens, in the words of policies: a node refuses a job with a facet that it has no rules for."""

    @abstractmethod
    def shares(self, spec: JobSpec) -> bool:
        """Whether computing parties hold shares of what the others bring."""

    @abstractmethod
    def unions(self, spec: JobSpec) -> Unions:
        """The unions and alignments that a job takes."""

    def resumes(self, spec: JobSpec) -> bool:
        """Whether parties keep what is disclosed on the way, so that another attempt can go on from there.

        It may be so under noise only if all of it comes from `mining.joint.coins`: a job is charged for one draw.
        """
        return False

    @abstractmethod
    def refusals(self, spec: JobSpec) -> frozenset[str]:
        """For which reasons a party may have to say that it cannot take part, beside those of every job.

        Keys of `jobs.fitness.REASONS` and `jobs.fitness.LEFT_OUT`.
        """

    @property
    def finds(self) -> str | None:
        """What it finds, in a word; None where it finds nothing but numbers of rows."""
        return None if self.finding is None else self.finding.name

    def unpack(self, packed: bytes) -> Finding:
        """What a party has packed, which may be anything.

        Raises:
            ValueError: It is no finding of this kind.
        """
        if self.finding is None:
            raise ValueError("such a job finds nothing but numbers of rows")
        return self.finding.unpack(packed)

    def told(self, spec: JobSpec, size: str, n_rows: int | None, found: str | None) -> str:
        """What came of a job, in a line for people.

        Args:
            spec: The job.
            size: The number of rows that it ran over, in words.
            n_rows: This number; None where it is not told.
            found: What its finding says of itself; None where there is none, or it is elsewhere.
        """
        if found is None and self.finds is not None:
            found = f"the {self.finds} is at {', '.join(spec.job.recipients)}"
        over = f"task {spec.job.task}: {size} of {len(spec.job.parties)} parties"
        return f"{over}; {found}" if found else over

    @abstractmethod
    def lead(self, spec: JobSpec) -> tuple[str, str]:
        """What a report is about, and what was done together, in words for its title."""

    def asks(self, spec: JobSpec) -> list[tuple[str, str]]:
        """What is asked for beside that: names of settings that matter most, and their values for people."""
        return []

    def facts(self, spec: JobSpec, strategy: str) -> list[tuple[str, str]]:
        """How it was done, for a report's list of facts, where these come after what was asked for."""
        return []

    def finds_positions(self, spec: JobSpec) -> bool:
        """Whether a result has the number of positions of rows, so that nobody learns how many rows are common."""
        return False

    def rows_called(self, spec: JobSpec) -> str:
        """What the rows are, over which a job runs."""
        return "rows in common" if spec.is_vertical else "rows"

    def cautions(self, spec: JobSpec, strategy: str, finding: Finding) -> list[str]:
        """What readers of a result should know of rows that were cut."""
        return []

    def default_ids(self, spec: JobSpec) -> tuple[str, ...]:
        """The columns of ids that are taken from files where nobody names any."""
        return ("id",)

    def check_columns(self, spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
        """Refuses tables that the job cannot run on, where the columns of all parties are known.

        Args:
            spec: The job.
            columns: By party, the names of its columns.

        Raises:
            ConfigurationError: The columns do not fit each other.
            InputDataError: A party lacks one.
        """

    def engine(self, spec: JobSpec) -> str | None:
        """How the job multiplies what lies at several parties; None where it has nothing to multiply."""
        return None

    def engine_reason(self, spec: JobSpec) -> str | None:
        """Why the job takes its engine, in a sentence; None where nothing is chosen."""
        return None

    def helper(self, spec: JobSpec) -> str | None:
        """Who helps the two computing parties: the coordinator as dealer, or a third party; None where nobody does."""
        return None

    def shufflers(self, spec: JobSpec) -> tuple[str, ...]:
        """The parties through which reports go, the first first; none where no reports are shuffled."""
        return ()

    def protects_from_parties(self, spec: JobSpec) -> bool:
        """Whether ε of its charge holds towards each party of the job too, not only towards others."""
        return True

    def mined_as(self, spec: JobSpec) -> HorizontalMining | None:
        """As what exact job over rows it is taken, to predict its candidates from what parties publish of theirs.

        None of a kind that depends on no such counts, or has no least support.
        """
        return None

    def is_dealt(self, spec: JobSpec) -> bool:
        """Whether the coordinator deals randomness to the two parties of the job."""
        return False
