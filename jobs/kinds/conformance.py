"""What every kind of job must do: checks for the tests of those who write one, here or in another distribution.

Each check of `CHECKS` takes an example, a small job with the data of its parties, and raises an `AssertionError` that
says what is wrong. It needs no test framework; with pytest:

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_kind(check: Check) -> None:
        check(Example(spec, data))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, get_args

from crypto.primitives.randomness import Randomness
from crypto.protocols.products.outside_dealer import Dealer
from jobs import fitness
from jobs.data import Data
from jobs.kinds.kind import ALL, Facet, Kind, Resources
from jobs.kinds.registry import kind_of, read_spec
from jobs.kinds.tables import said_in_vain
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.proposed import job_from_canonical
from jobs.run import PartyRun, run_party
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.errors import ConfigurationError
from link.executor import ThreadExecutor
from link.journal import Journal, MemoryJournal
from link.pki.authority import Authority
from link.transports.memory import Hub
from protos.v1.plan_pb2 import Speed

_SEED: Final = 7
_SPARE: Final = 1.15  # a plan's bytes are right to this factor, where it says them
_SPEED: Final = Speed(
    multiply_s=4e-5,
    byte_s=1e-9,
    frame_byte_s=2e-9,
    frame_s=1e-5,
    candidate_s=1e-6,
    row_s=1e-7,
    row_pairs_s=1e-6,
    transfer_s=1e-7,
)
_FOREIGN: Final[Mapping[str, Mapping[str, Any]]] = {
    "itemsets": {"min_support": 2},
    "rules": {"min_confidence": "0.5"},
    "union": {"bound": 5},
    "align": {"trim": True},
    "privacy": {"model": "local", "epsilon": "2"},
    "plan": {"rows": 7},
    "k_means": {"attributes": ["weight", "height"], "k": 3},
    "naive_bayes": {"target": "class", "attributes": ["weight"]},
    "columns": {"c": {"values": ["a", "b"]}},
    "anonymize": {
        "quasi_identifiers": ["town"],
        "model": {"k": 3},
        "hierarchies": {"town": [["A", "*"], ["B", "*"]]},
    },
}
"""Contents of every table of comine's own, of which a kind refuses those that mean nothing in it."""


@dataclass(frozen=True)
class Example:
    """A job with the data of its parties: small, since it is run.

    Attributes:
        spec: The job.
        data: By party, what it brings.
    """

    spec: JobSpec
    data: Mapping[str, Data]

    @property
    def kind(self) -> Kind:
        """Of the job."""
        return kind_of(self.spec)

    @cached_property
    def runs(self) -> dict[str, PartyRun]:
        """The job, run by all parties in memory."""
        return self.attempt({}, 1)

    def attempt(self, journals: Mapping[str, Journal], number: int) -> dict[str, PartyRun]:
        """One attempt of the job.

        Args:
            journals: By party what it keeps of the job; of no party, or of all.
            number: Which this is.
        """
        return asyncio.run(self._run(journals, number))

    async def _run(self, journals: Mapping[str, Journal], attempt: int) -> dict[str, PartyRun]:
        hub, authority, executor = Hub(), Authority.create(), ThreadExecutor(1)
        random, parties = Randomness.from_seed(_SEED), self.spec.job.parties
        lent = {party: Resources(journal=journals.get(party)) for party in parties}
        if self.kind.is_dealt(self.spec):
            dealt = zip(parties, Dealer(random.derive("dealer")).here(), strict=True)
            lent = {party: Resources(dealings=dealings, journal=lent[party].journal) for party, dealings in dealt}

        def one(party: str) -> Any:
            return run_party(
                self.spec,
                self.data[party],
                hub.endpoint(party),
                job_id=bytes(32),
                attempt=attempt,
                identity=authority.issue(party),
                random=random.derive(f"{party} {attempt}"),
                executor=executor,
                progress=lambda step, done, total: None,
                resources=lent[party],
            )

        try:
            return dict(zip(parties, await asyncio.gather(*map(one, parties)), strict=True))
        finally:
            executor.close()


Check = Callable[[Example], None]


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def is_read_again(example: Example) -> None:
    """Its canonical form is read again as the same job, and tables of its own are as strict as comine's."""
    spec = example.spec
    _require(type(spec) is example.kind.specification, "the job is read with the model of job files of its kind")
    _require(job_from_canonical(spec.canonical()) == spec, "the job is another one when it is read again")
    for name, table in {"the job file": spec, **dict(spec)}.items():
        config = getattr(type(table), "model_config", None)
        strict = config is None or (config.get("extra") == "forbid" and config.get("frozen"))
        _require(strict, f"{name}: its model forbids no unknown keys, or is not frozen; derive it from Section")


def refuses_foreign_tables(example: Example) -> None:
    """A table or key that means nothing in the job is refused when it is read."""
    spec = example.spec
    meant = example.kind.tables(spec)
    _require(not list(said_in_vain(spec, meant)), "the job itself has a table or key that means nothing in it")
    known = {each.alias or name: each for name, each in type(spec).model_fields.items()}
    for table, keys in meant.items():
        _require(table in known, f"tables: there is no table [{table}]")
        section = next(getattr(spec, name) for name, each in type(spec).model_fields.items() if each is known[table])
        if keys != ALL and section is not None:
            called = {each.alias or key for key, each in type(section).model_fields.items()}
            _require(keys <= called, f"tables: [{table}] has no key {', '.join(sorted(keys - called))}")
    first, *others = spec.job.parties
    of_parties: dict[str, dict[str, Any]] = {"trust": {"helper": first}, "groups": {"one": [first], "two": others}}
    for table, contents in {**_FOREIGN, **of_parties}.items():
        if meant.get(table) != ALL:
            _refuses(spec, table, contents)


def _refuses(spec: JobSpec, table: str, contents: Mapping[str, Any]) -> None:
    plain = spec.model_dump(mode="json", by_alias=True)
    plain[table] = (plain.get(table) or {}) | dict(contents)
    try:
        changed = read_spec(plain, "the example")
    except ConfigurationError:
        return  # it cannot even be written so
    try:
        kind = kind_of(changed)
        vain = [*said_in_vain(changed, kind.tables(changed))]
    except ConfigurationError:
        vain = [f"[{table}], by which it is of no kind"]
    if not vain:
        return  # a key that means something there
    try:
        job_from_canonical(changed.canonical())
    except ConfigurationError:
        return
    raise AssertionError(f"the job is taken although it has {', '.join(vain)}")


def says_what_it_discloses(example: Example) -> None:
    """Its statement has a result, names parties of the job alone, and its reasons to refuse rows are known ones."""
    spec, kind, stated = example.spec, example.kind, statement(example.spec)
    everybody = {"coordinator", *spec.job.parties}
    _require(stated.learned[0].kind == "result", "the statement does not begin with the result")
    _require(stated.collusion, "the statement says nothing of collusion")
    for line in stated.learned:
        _require(line.what and set(line.who) <= everybody, f"who learns it, or what it is: {line}")
    for opened in stated.declared:
        _require(opened.what and opened.recipients <= everybody, f"who may learn it, or what it is: {opened}")
    reasons = {reason.key for reason in (*fitness.REASONS, *fitness.LEFT_OUT)}
    _require(kind.refusals(spec) <= reasons, "refusals: a reason that jobs.fitness does not have")
    facets = kind.facets(spec)
    _require(facets and facets <= set(get_args(Facet)), "facets: none, or one that no policy knows")


def charges_what_its_model_costs(example: Example) -> None:
    """The ledger is charged under the model of the job, and nothing where no noise bounds what is disclosed."""
    cost = example.kind.charge(example.spec)
    _require(cost.model == example.spec.privacy.model, "charge: another privacy model than that of the job")
    exact = cost.model == "exact"
    _require((cost.epsilon is None) == (cost.delta is None) == exact, "charge: epsilon and delta belong to noise")
    _require(example.kind.estimates != exact, "estimates: what has noise is an estimate, and nothing else")


def what_it_finds_is_packed_and_read_again(example: Example) -> None:
    """All learners find the same, which is read from its bytes as it was, and other bytes are refused."""
    spec, kind = example.spec, example.kind
    runs = example.runs
    found = [runs[party].outcome.finding for party in spec.learners]
    canonical = {None if finding is None else finding.canonical().pack() for finding in found}
    _require(len(canonical) == 1, "two learners have found different things")
    if kind.finds is None:
        _require(found == [None] * len(found), "finds is None, and a party has found something")
        _require(_is_refused(kind, b"anything"), "unpack reads bytes as a finding, and there is none")
        return
    for finding in found:
        if finding is None:
            raise AssertionError("a learner has found nothing")
        packed = finding.pack()
        again = kind.unpack(packed)
        _require(again.pack() == packed, "what is packed is read as something else")
        _require({again.canonical().pack()} == canonical, "what is read again is put into another order")
        _require(again.n_rows == runs[spec.learners[0]].outcome.n_rows, "the finding has another number of rows")
        _require(again.name == kind.finds, "the finding is not called what the kind says")
        _require(again.fits(spec), "the finding does not fit its own job")
        _require(_is_refused(kind, packed[: len(packed) // 2]), "unpack takes half a finding")
    for party in set(spec.job.parties) - set(spec.learners):
        _require(runs[party].outcome.finding is None, f"{party} is no learner, and has found something")


def _is_refused(kind: Kind, packed: bytes) -> bool:
    try:
        kind.unpack(packed)
    except ValueError:
        return True
    return False


def costs_what_its_plan_says(example: Example) -> None:
    """The bytes of each party are those of the plan, or lie in the range that the plan gives."""
    spec, certificate = example.spec, len(Authority.create().issue(example.spec.job.parties[0]).certificate_pem)
    rows = {party: data.n_rows for party, data in example.data.items()}
    answers = {party: Answer(party, _SPEED, certificate, n_rows) for party, n_rows in rows.items()}
    plan = estimate(spec, answers, 0.001, compare=False)
    _require(plan.prose == statement(spec).prose(), "the plan does not say what the statement says")
    _require(set(plan.parties) == set(spec.job.parties), "the plan is not for the parties of the job")
    for party, run in example.runs.items():
        said, sent = plan.parties[party], run.costs.bytes_sent
        least = said.bytes_sent if said.bytes_sent_at_least is None else said.bytes_sent_at_least
        most = said.bytes_sent_at_most
        if most is None and not plan.is_least and said.bytes_sent_at_least is None:
            most = said.bytes_sent
        _require(sent * _SPARE >= least, f"{party} sent {sent} bytes, and the plan said {least} at least")
        if most is not None:
            _require(sent <= most * _SPARE, f"{party} sent {sent} bytes, and the plan said {most} at most")


def goes_on_or_says_that_it_cannot(example: Example) -> None:
    """A kind that resumes goes on from each step that its parties kept, and finds the same; another keeps nothing."""
    parties = example.spec.job.parties
    if not example.kind.resumes(example.spec):
        return
    journals = {party: MemoryJournal() for party in parties}
    first = example.attempt(journals, 1)
    kept = {party: tuple(journal.kept) for party, journal in journals.items()}
    _require(all(kept.values()), "resumes is True, and a party has kept nothing")
    _require(len({len(steps) for steps in kept.values()}) == 1, "one party has kept more steps than another")
    number = len(kept[parties[0]])
    for came in sorted({1, number // 2, number}):
        again = {
            party: MemoryJournal(kept[party][: came if party == parties[0] else None], journals[party].coins)
            for party in parties  # all but one compare each step that is taken again with what they have kept of it
        }
        run = example.attempt(again, 2)
        for party in example.spec.learners:
            same = _packed(first[party]) == _packed(run[party])
            _require(same, f"{party} has found something else in another attempt, after step {came} of {number}")


def _packed(run: PartyRun) -> tuple[int | None, bytes]:
    finding = run.outcome.finding
    return run.outcome.n_rows, b"" if finding is None else finding.canonical().pack()


CHECKS: Final[tuple[Check, ...]] = (
    is_read_again,
    refuses_foreign_tables,
    says_what_it_discloses,
    charges_what_its_model_costs,
    what_it_finds_is_packed_and_read_again,
    costs_what_its_plan_says,
    goes_on_or_says_that_it_cannot,
)
"""All of them; the last three run the job."""
