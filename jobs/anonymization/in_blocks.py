"""Configurations whose rows do not fit memory: full-domain recoding of a file that is read in blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from anonymize.blocks.identifying import rare, repeated, warnings
from anonymize.blocks.publishing import publish_blocks
from anonymize.blocks.release import BlockRelease
from anonymize.blocks.sources import Blocks, CsvBlocks, ParquetBlocks
from anonymize.blocks.table import BlockTable
from anonymize.blocks.tuples import BlockProblem
from anonymize.certificate import Certificate
from anonymize.uniqueness import refuse_identifying, refuse_repeated
from jobs.anonymization.folder import holds_earlier
from jobs.anonymization.full_domain import algorithm_of, check_suppression
from jobs.anonymization.inputs import (
    Inputs,
    described,
    inputs_of,
    source_file,
    sources_of,
)
from jobs.anonymization.spec import FULL_DOMAIN, AnonymizeSection, read_spec
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from link.errors import ConfigurationError
from link.runtime.memory_limit import memory_limit
from mining.data.copies import files_of, is_plain
from mining.data.formats.workbooks import is_workbook
from mining.data.schemes.registry import scheme_of
from mining.partitioned.encoding.expected import Rates, expected_bytes

_SHARE: Final = 0.5  # of the memory, that rows may take which are read into it
_RATES: Final = Rates(64, 12, 72)


def lies_in_blocks(spec: AnonymizeSection, folder: Path) -> bool:
    """Whether the rows of a configuration are read in blocks; with `engine = "auto"` if they may not fit memory.

    Raises:
        ConfigurationError: They are to be, and the algorithm or the source needs them in memory.
    """
    if spec.engine == "blocks":
        if spec.algorithm not in FULL_DOMAIN:
            raise ConfigurationError(
                f'algorithm = "{spec.algorithm}" compares rows with each other, so it needs all of them in memory; '
                f'take engine = "memory", or one of {", ".join(FULL_DOMAIN)}, which need only the distinct combinations'
            )
        if spec.is_database:
            raise ConfigurationError(
                'engine = "blocks" reads a file several times, and a query may give other rows each time; write its '
                'rows to a Parquet file, or take engine = "memory"'
            )
        return True
    if spec.engine == "memory" or spec.algorithm not in FULL_DOMAIN or spec.is_database:
        return False
    return _expected(spec, folder) > _SHARE * memory_limit()


def _expected(spec: AnonymizeSection, folder: Path) -> int:
    """Bytes of memory that the rows may take; of files elsewhere and of workbooks by their sizes, rather too much."""
    place, options = spec.place(folder), spec.options(folder)
    if is_plain(place, options):
        return expected_bytes(Path(place), spec.form, _RATES)
    is_here = scheme_of(place) is None and not is_workbook(place)
    return sum(
        expected_bytes(Path(file.place), spec.form, _RATES) if is_here else _RATES.packed * file.size
        for file in files_of(place, options)
    )


@dataclass(frozen=True, eq=False)
class BlockRun:
    """A release of rows in blocks.

    Attributes:
        inputs: What was anonymised; its table is a `BlockTable`.
        release: The outcome.
        warnings: What columns that are released as they are may reveal, as sentences.
    """

    inputs: Inputs
    release: BlockRelease
    warnings: Sequence[str]


@contextmanager
def opened_source(spec: AnonymizeSection, folder: Path) -> Iterator[Blocks]:
    """The source of a configuration, which is no database, for as long as its blocks are read.

    Raises:
        ConfigurationError: What reads it is not installed, or no password is where it is said to be.
        InputDataError: It cannot be read.
    """
    with source_file(spec, folder) as path:
        yield ParquetBlocks(path) if spec.form == "parquet" else CsvBlocks(path, spec.separator)


def table_in_blocks(spec: AnonymizeSection, source: Blocks, names: Sequence[str], scratch: Path) -> BlockTable:
    """`inputs.table_of` for rows in blocks; only the named columns are read.

    Args:
        spec: The configuration.
        source: Of the rows.
        names: The columns.
        scratch: A folder for what does not fit memory.
    """
    table = BlockTable.counted(source, names, *described(spec), spec.missing)
    persons = [name for name in spec.identifiers if name not in spec.allow_repeated]
    refuse_repeated(repeated(table.rows(persons), persons, scratch) if persons else ())
    left = [name for name in spec.as_they_are if name not in spec.allow_unique]
    if left and table.n_rows >= spec.least:
        refuse_identifying(rare(table.rows(left), left, spec.least, scratch, together=False), spec.least)
    return table


def load_blocks(config: Path, spec: AnonymizeSection, source: Blocks, scratch: Path) -> Inputs:
    """`inputs.load` for rows in blocks.

    Args:
        config: The file.
        spec: What it says.
        source: Its rows.
        scratch: A folder for what does not fit memory.
    """
    return inputs_of(spec, config, table_in_blocks(spec, source, source.column_names, scratch))


def run_blocks(inputs: Inputs, scratch: Path) -> BlockRelease:
    """`running.run` for rows in blocks.

    Args:
        inputs: Whose table is a `BlockTable`.
        scratch: A folder for what does not fit memory.

    Raises:
        ConfigurationError: The requirements cannot be met, or a parameter does not suit; the sentence gives the reason.
        InputDataError: A hierarchy lacks values, or the source has changed.
    """
    spec, table = inputs.spec, inputs.table
    assert isinstance(table, BlockTable)
    assert inputs.requirements is not None
    module, _, options = algorithm_of(spec)
    problem = BlockProblem.of(table, inputs.hierarchies, inputs.requirements, spec.max_suppression)
    found = import_module(f"anonymize.fulldomain.{module}").recode(problem, spec.loss, **options)
    release = BlockRelease.of(problem, found, spec.suppressed).named(spec.algorithm)
    check_suppression(spec, release.suppressed, table.n_rows)
    left = [name for name in spec.as_they_are if name not in spec.allow_unique]
    if left and (release.published < table.n_rows or table.n_rows < spec.least):  # else nothing has changed
        refuse_identifying(rare(release.rows(), left, spec.least, scratch, together=False), spec.least)
    return release


def anonymize_in_blocks(config: Path, out: Path) -> tuple[BlockRun, Certificate]:
    """Runs a configuration over blocks, and writes the folder of its release, without a report.

    Args:
        config: The configuration.
        out: The folder; an earlier release in its place is replaced.

    Raises:
        ComineError: The configuration or the data is at fault, or the models cannot be met; the message says why.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    parent = out.resolve().parent
    parent.mkdir(parents=True, exist_ok=True)
    spec = read_spec(config)
    with (
        tempfile.TemporaryDirectory(prefix=".comine-", dir=parent) as place,
        opened_source(spec, config.resolve().parent) as source,
    ):
        scratch = Path(place)
        inputs = load_blocks(config, spec, source, scratch)
        release = run_blocks(inputs, scratch)
        table = inputs.table
        assert isinstance(table, BlockTable)
        said = warnings(table, inputs.spec.as_they_are, inputs.spec.least, scratch)
        return BlockRun(inputs, release, said), write_folder(out, inputs, release, scratch)


def write_folder(out: Path, inputs: Inputs, release: BlockRelease, scratch: Path) -> Certificate:
    """Writes `release.csv`, `release.parquet`, `certificate.json`, the manifest, and `labels.json` where needed.

    Args:
        out: The folder.
        inputs: What was anonymised.
        release: What is written.
        scratch: A folder for what does not fit memory.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier release.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    certificates = []

    def fill(draft: Path) -> None:
        in_order = inputs.spec.row_order == "sorted"
        sources = sources_of(inputs)
        certificates.append(publish_blocks(draft, release, in_order=in_order, sources=sources, scratch=scratch))
        seal(draft, None)

    write_whole(out, fill, holds_earlier)
    return certificates[0]
