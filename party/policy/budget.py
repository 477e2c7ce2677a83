"""The privacy ledger of a party as data and as text: totals, what is spent under each model, what is left, the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from jobs.documents.budget import (
    Amounts,
    BudgetDocument,
    ChargedStart,
    ColumnsTaken,
    DatasetSpent,
    ModelSpent,
    TakenTogether,
)
from jobs.privacy_account import Charge
from link.errors import UsageError
from link.files.printable import enumeration
from link.files.quantities import seconds
from party.config import PartyConfig
from party.data.shared_sources import alike
from party.policy.inbox import clock, words
from party.policy.inbox_text import SHORT, columns, harmless
from party.policy.joint_result import columns_taken
from party.policy.privacy_budget import NAMES, DatasetBudget, Totals, amounts, amounts_of, left, short, totals
from party.state.ledger import Entry, Ledger, charges

MOST_MOMENTS: Final = 60  # each is a sum over all charges that count


def budget(config: PartyConfig, ledger: Ledger, dataset: str | None, now: float) -> BudgetDocument:
    """The ledgers of all datasets, or of one.

    Args:
        config: The node's file.
        ledger: Its ledger, which may know datasets that the file no longer has.
        dataset: The name of the one.
        now: Unix seconds.

    Raises:
        UsageError: There is no such dataset, and never was.
    """
    names = list(dict.fromkeys([*config.datasets, *ledger.datasets()]))
    if dataset is not None:
        if dataset not in names:
            known = ", ".join(names) or "none"
            raise UsageError(f"{config.party.name} has no dataset '{dataset}', and never charged one; it has {known}")
        names = [dataset]
    together = alike(config.dataset)
    found = [_dataset(name, together.get(name, (name,)), _table(config, name), ledger, now) for name in names]
    return BudgetDocument(party=config.party.name, datasets=found)


class Moment(NamedTuple):
    """What had been spent at one time.

    Attributes:
        at: Unix seconds.
        spent: By all jobs that counted then.
    """

    at: float
    spent: Totals


def course(config: PartyConfig, ledger: Ledger, dataset: str, now: float) -> list[Moment]:
    """How the `spent` of a dataset's `DatasetSpent` came about: after each start, the latest alone of very many.

    Args:
        config: The node's file.
        ledger: Its ledger.
        dataset: The name of a dataset.
        now: Unix seconds, of the last moment.
    """
    table, together = _table(config, dataset), alike(config.dataset).get(dataset, (dataset,))
    period = None if table.period is None else seconds(table.period)
    known = sorted((entry for name in together for entry in ledger.entries(name)), key=lambda entry: entry.time)
    forgotten = Counter[Charge]()
    if period is None:
        forgotten = _of_all(ledger, together, None) - Counter(entry.charge for entry in known)
    counting, begun, over, found = forgotten, 0, 0, []
    for at in (*(entry.time for entry in known[-MOST_MOMENTS:]), now):
        while begun < len(known) and known[begun].time <= at:
            counting[known[begun].charge] += 1
            begun += 1
        while period is not None and over < begun and known[over].time <= at - period:
            counting[known[over].charge] -= 1
            over += 1
        found.append(Moment(at, totals(charges(+counting, composed=table.composition == "optimal"), table)))
    return found


def _table(config: PartyConfig, name: str) -> DatasetBudget:
    found = config.datasets.get(name)
    return found.privacy if found is not None and found.privacy is not None else DatasetBudget()


def _of_all(ledger: Ledger, datasets: Iterable[str], since: float | None) -> Counter[Charge]:
    """What the datasets of one source have spent together."""
    return sum((ledger.spent(name, since) for name in datasets), Counter[Charge]())


def _dataset(name: str, together: Iterable[str], table: DatasetBudget, ledger: Ledger, now: float) -> DatasetSpent:
    since = None if table.period is None else now - seconds(table.period)
    ever = ledger.spent(name)
    counting = _of_all(ledger, together, since)
    spent = totals(charges(counting, composed=table.composition == "optimal"), table)
    models = dict.fromkeys(cost.model for cost in ever)
    return DatasetSpent(
        name=name,
        exact=table.exact,
        composition=table.composition,
        period=table.period,
        totals=amounts_of(table),
        spent=amounts_of(spent),
        left=amounts(left(table, spent)),
        models={model: _under(Counter({c: n for c, n in ever.items() if c.model == model})) for model in models},
        together=_together(ledger, tuple(together)),
        jobs=[_start(entry, counts=since is None or entry.time > since) for entry in ledger.entries(name)],
    )


def _together(ledger: Ledger, datasets: Sequence[str]) -> TakenTogether:
    results = sorted(ledger.results(datasets))
    return TakenTogether(
        sums=[list(parties) for parties in dict.fromkeys(each.parties for each in results if each.sums)],
        more=[list(parties) for parties in dict.fromkeys(each.parties for each in results if not each.sums)],
        thresholds=sorted({each.threshold for each in results if each.threshold}),
        columns=[columns_taken(each) for each in sorted({each.columns for each in results if each.columns})],
        versions=sum(len(ledger.versions(dataset)) for dataset in datasets),
    )


def _under(spent: Counter[Charge]) -> ModelSpent:
    """Of one model; where it bounds nothing, no sum does."""
    costs = charges(spent, composed=False)
    bounded = any(cost.epsilon is not None for cost in costs)
    return ModelSpent(starts=spent.total(), spent=amounts_of(totals(costs) if bounded else costs[0]))


def _start(entry: Entry, *, counts: bool) -> ChargedStart:
    return ChargedStart(
        job_id=entry.job_id.hex(),
        attempt=entry.attempt,
        name=entry.name,
        coordinator=entry.coordinator,
        started=clock(entry.time) or "",
        model=entry.charge.model,
        charged=amounts_of(entry.charge),
        state=words(entry.state) or "unknown",
        counts=counts,
    )


# -- for people -------------------------------------------------------------------------------------------------------
def budget_text(document: BudgetDocument) -> str:
    """The ledgers, one dataset after the other."""
    lines = (line for number, dataset in enumerate(document.datasets) for line in _shown(dataset, first=not number))
    return "".join(harmless(line) + "\n" for line in lines) or f"{document.party} has no dataset\n"


def _shown(dataset: DatasetSpent, *, first: bool) -> Iterator[str]:
    if not first:
        yield ""
    within = "" if dataset.period is None else f" within {dataset.period}"
    yield f"{dataset.name}: what all jobs{within} may have cost each record, by {dataset.composition} composition"
    rows = [(name, _people(getattr(dataset.spent, key)), _limit(dataset, key)) for key, name in NAMES.items()]
    yield from (f"  {line}" for line in columns([("", "spent", "left"), *rows]))
    if dataset.exact == "refuse":
        yield "  jobs without noise are refused"
    if not dataset.jobs:
        yield "  no job was started"
        return
    models = [(model, str(each.starts), *_cells(each.spent)) for model, each in dataset.models.items()]
    model = "model" if dataset.period is None else "model, at any time"
    yield from (f"  {line}" for line in columns([(model, "starts", *NAMES.values()), *models]))
    yield from _of_exact_jobs(dataset.together)
    jobs = [
        (
            job.started[:16].replace("T", " "),
            job.job_id[:SHORT] + (f"/{job.attempt}" if job.attempt > 1 else ""),
            job.model,
            *_cells(job.charged),
            job.state + ("" if job.counts else ", counts no more"),
            job.name,
        )
        for job in dataset.jobs
    ]
    yield from (f"  {line}" for line in columns([("started", "job", "model", *NAMES.values(), "state", "name"), *jobs]))


def _of_exact_jobs(given: TakenTogether) -> Iterator[str]:
    told = [
        ("sums of", "; ".join(map(", ".join, given.sums))),
        ("more than sums of", "; ".join(map(", ".join, given.more))),
        ("hidden supports at", ", ".join(given.thresholds)),
    ]
    if given.sums or given.more:
        rows = "one version" if given.versions == 1 else f"{given.versions} versions"
        yield f"  what min_group takes together of exact jobs, on {rows} of the rows"
        yield from (f"    {what} {which}" for what, which in told if which)
        yield from (f"    over columns, {columns_text(way)}" for way in given.columns)


def columns_text(way: ColumnsTaken | None) -> str:
    """How jobs over columns take them, in the words of job files."""
    if way is None:
        return "in a way that is not known any more"
    parts = [f'ids by trim = {str(way.trim).lower()}, case = "{way.case}", unicode = "{way.unicode}"']
    parts += [f"group of {enumeration(members)}" for members in way.groups]
    parts += [
        f"'{column}' in {cuts} quantiles" if isinstance(cuts, int) else f"'{column}' cut at {', '.join(cuts)}"
        for column, cuts in way.intervals.items()
    ]
    return "; ".join(parts)


def _limit(dataset: DatasetSpent, key: str) -> str:
    total = getattr(dataset.totals, key)
    return "no limit" if total is None else f"{_people(getattr(dataset.left, key))} of {_people(total)}"


def _cells(given: Amounts) -> list[str]:
    if given.epsilon is None:
        return ["unbounded", "", ""]
    return [_people(getattr(given, key)) for key in NAMES]


def _people(amount: str | None) -> str:
    return "" if amount is None else short(Decimal(amount))
