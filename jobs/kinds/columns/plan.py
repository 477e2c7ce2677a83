"""The plan of a job over columns: its alignment, and all that it mines as far as the parties let expect it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from crypto.protocols.alignment.costs import AlignmentSizes, list_disk_bytes
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.alignment.list_limits import LIST_MEMORY
from jobs.kinds.columns.parameters import mines, third_party, vertical_mining
from jobs.kinds.columns.plan_engines import engine_variants, of_engines, why
from jobs.kinds.columns.plan_figures import After, VerticalFigures
from jobs.kinds.columns.plan_sizes import MOST_ROWS, ExpectedColumns
from jobs.plan.alternatives import alternative, is_possible
from jobs.plan.answer import Answer
from jobs.plan.assumptions import of_network
from jobs.plan.plan import Alternative, Batch, Plan
from jobs.plan.prices import ENCODE_CELL_S, PROCESS_BYTES
from jobs.plan.session_plan import session_plan
from jobs.spec.job import JobSpec
from link.files.printable import enumeration
from mining.joint.vertical.choice import VERIFIED, chosen_engine
from mining.joint.vertical.engines.names import AUTO

_NOTABLE_BYTES: Final = 100 << 20
_LISTS: Final = f"Lists of ids take {LIST_MEMORY >> 20} MiB of memory, unless a party sets [party] alignment_memory,"
_NOT_MINED = "the figures are those of the alignment, and mining is not among them."


def estimate(
    spec: JobSpec,
    answers: Mapping[str, Answer],
    latency_s: float,
    *others: str,
    compare: bool = True,
    after: After | None = None,
) -> Plan:
    """What a job over columns will cost and disclose.

    Args:
        spec: The job.
        answers: What each of its parties is taken to be.
        latency_s: As in `jobs.plan.estimate.estimate`.
        others: As there.
        compare: As there.
        after: What a job that does not mine does once rows are aligned, where that can be foretold.
    """
    answers = {name: answers[name] for name in spec.job.parties}
    figures = VerticalFigures.of(spec, answers, latency_s, after)
    sizes = figures.found.sizes
    published = spec.plan.rows is not None or any(answer.n_rows is not None for answer in answers.values())

    def figures_of(changed: JobSpec) -> VerticalFigures:
        return VerticalFigures.of(changed, answers, latency_s, after)

    compared = {
        engine: (way, figures if way.chosen else figures_of(way.spec))
        for engine, way in engine_variants(spec).items()
        if compare
    }
    return session_plan(
        spec,
        answers,
        figures.traffic,
        figures.seconds,
        figures.memory_bytes,
        n_rows=min(sizes.rows.values()) if published else None,
        strategy=_strategy(spec),
        is_least=(not published and spec.alignment.bound is None)
        or (mines(spec) and not figures.found.includes_mining),
        batches=[
            Batch.of(f"level-{length}", spec.itemsets.disclose, level.candidates, level.frequent)
            for length, level in enumerate(sizes.levels, 2)
        ],
        assumptions=[
            *others,
            *_assumptions(spec, answers, figures.found, latency_s),
            *_of_blocks(spec, answers, figures),
        ],
        alternatives=[
            *(
                _alternative(spec, *way, figures_of(way[1]), known=published)
                for way in (*alignments(spec), *secured(spec))
                if compare
            ),
            *(
                _alternative(spec, f"engine {engine}", way.spec, way.change, other, known=published)
                for engine, (way, other) in compared.items()
                if not way.chosen
            ),
        ],
        engines=of_engines(compared, known=published and figures.found.includes_mining),
        engine_reason=why(spec, compared) if compare else None,
    )


def _strategy(spec: JobSpec) -> str:
    return f"level-wise, {chosen_engine(vertical_mining(spec)).name}" if mines(spec) else spec.alignment.mode


# -- other ways --------------------------------------------------------------------------------------------------------
def alignments(spec: JobSpec) -> list[tuple[str, JobSpec, list[str]]]:
    """Other alignments that the job may have: their names, jobs and lines of the job file."""
    found = []
    for mode in ("intersection", "cardinality", "union"):
        changed = spec.model_copy(update={"align": spec.alignment.model_copy(update={"mode": mode})})
        if mode != spec.alignment.mode and is_possible(changed):
            found.append((f"{mode} of rows", changed, [f'[align] mode = "{mode}"']))
    return found


def secured(spec: JobSpec) -> list[tuple[str, JobSpec, list[str]]]:
    """The job that holds against parties that deviate, too, or against semi-honest ones alone, if that is possible.

    The former takes a helper and products that are checked.
    """
    if not mines(spec) or len(spec.job.parties) == 2:
        return []
    security, update = "semi-honest" if spec.is_verified else "malicious", {}
    trust, lines = {"security": security}, [f'[trust] security = "{security}"']
    if not spec.is_verified and spec.trust.helper == "none":
        trust["helper"] = third_party(spec)
        lines.append(f'[trust] helper = "{trust["helper"]}"')
    if not spec.is_verified and spec.itemsets.engine not in (AUTO, VERIFIED):
        update["itemsets_"] = spec.itemsets.model_copy(update={"engine": VERIFIED})
        lines.append(f'[itemsets] engine = "{VERIFIED}"')
    changed = spec.model_copy(update={**update, "trust": spec.trust.model_copy(update=trust)})
    return [(f'security = "{security}"', changed, lines)] if is_possible(changed) else []


def _alternative(
    spec: JobSpec, name: str, changed: JobSpec, lines: Sequence[str], figures: VerticalFigures, *, known: bool
) -> Alternative:
    known = known and (figures.found.includes_mining or not mines(changed))
    return alternative(name, lines, spec, changed, _strategy(changed), figures if known else None)


# -- on what it rests --------------------------------------------------------------------------------------------------
def _assumptions(spec: JobSpec, answers: Mapping[str, Answer], found: ExpectedColumns, latency_s: float) -> list[str]:
    hidden = [name for name, answer in answers.items() if answer.n_rows is None]
    lines = []
    if len(hidden) == len(answers):
        taken = "what its bound allows" if spec.alignment.bound else "the least that it can be"
        if spec.plan.rows is not None:
            taken = f"the {spec.plan.rows:,} of [plan] rows"
        lines.append(f"No party publishes its number of rows: the figures of the alignment assume {taken}.")
    elif hidden:
        lines.append(
            f"{enumeration(hidden)} {'hides' if len(hidden) == 1 else 'hide'} the number of rows: it is taken to be "
            "the mean of the others."
        )
    if any((answer.n_rows or 0) > MOST_ROWS for answer in answers.values()) or (spec.plan.rows or 0) > MOST_ROWS:
        lines.append(
            f"More than {MOST_ROWS:,} rows of a party cannot be aligned: there the job would end with an error."
        )
    if spec.alignment.mode != "union" and (mines(spec) or len(answers) > 2):
        common = min(found.sizes.rows.values())
        lines.append(f"All {common:,} rows of the party with the fewest are taken to be common; fewer cost less.")
    if mines(spec):
        lines += _of_mining(spec, found)
    lines.append(of_network(spec, latency_s))
    return lines


def _of_blocks(spec: JobSpec, answers: Mapping[str, Answer], figures: VerticalFigures) -> list[str]:
    """What lists of ids take beside memory, and what tables in blocks take; nothing where tables are small."""
    sizes = figures.found.sizes
    lists = AlignmentSizes.of(sizes.rows, sizes.common, spec.alignment.bound)
    lines = _of_lists(spec.alignment.mode, lists)
    saved = {
        name: number - figures.block_bytes[name]
        for name, number in figures.memory_bytes.items()
        if answers[name].block_bytes is None
    }
    if max(saved.values(), default=0) < _NOTABLE_BYTES:
        return lines
    nodes = enumeration(
        [f"{name} {figures.block_bytes[name] / 1e9:.1f} GB" for name, number in saved.items() if number > 0]
    )
    cells = max(sizes.rows[name] * (sizes.columns[name].number + 1) for name in saved)
    return [
        *lines,
        'Memory is that of nodes that read their tables into it. With tables in blocks (engine = "processes") a node '
        f"needs less: {nodes}, beside up to {PROCESS_BYTES >> 20} MiB for each process; to encode the largest table "
        f"once takes about {cells * ENCODE_CELL_S:.0f} s of a core, and the job as long as before.",
    ]


def _of_lists(mode: Mode, lists: AlignmentSizes) -> list[str]:
    """Where lists of ids lie; nothing where they are short."""
    disk = list_disk_bytes(lists, mode)
    return [f"{_LISTS} and up to {disk / 1e9:.1f} GB of the disk while rows are aligned."] if disk else []


def _of_mining(spec: JobSpec, found: ExpectedColumns) -> list[str]:
    if not found.mined:
        return [
            f"No party publishes how many of its items are frequent, and the job says no [plan] items: {_NOT_MINED}"
        ]
    if found.too_many is not None and not found.sizes.levels:
        return [f"{found.too_many:,} pairs are too many: {_NOT_MINED}"]
    lines = ["Items are taken to be frequent among the common rows where they are among a party's own."]
    if found.longer:
        lines.append(
            "How many candidates span parties is a guess: columns of different parties are taken to be independent. "
            "Where they depend on one another, the job costs more."
        )
    else:
        lines.append(
            "No party publishes sizes of longer itemsets or of names: these are not counted, and the job costs more."
        )
    if found.beyond is not None:
        lines.append(
            f"More candidates of {found.beyond} items are expected than max_candidates = "
            f"{spec.itemsets.max_candidates} leaves room for, beside the itemsets of fewer items: there the job would "
            "end with an error; raise min_support, set max_length, or raise max_candidates."
        )
    if found.too_many is not None:
        lines.append(
            f"The {found.too_many:,} candidates of {len(found.sizes.levels) + 2} items are too many to be counted "
            "here: they and longer ones are not among the figures, and the job costs more."
        )
    if vertical_mining(spec).rules is not None:
        lines.append("Of rules those with one item on the right are counted; more are examined where these hold.")
    return lines
