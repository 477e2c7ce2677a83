"""Makes one release in a process of its own, which may be ended at any time.

It runs as `python -m party.services.anonymization.worker`. The task comes as one line of JSON on standard input,
which stays open: where it ends, the node is gone, and so is the process. The outcome leaves as one line of JSON on
standard output. Sentences of the library name values of the data; they stay beside the data as the `reason`, and what
may cross the wire is composed here.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.anonymization.spec import AnonymizeSection
from link.errors import ComineError, ConfigurationError, InputDataError, ResourceError

if TYPE_CHECKING:
    from anonymize.certificate import Certificate
    from anonymize.hierarchies.hierarchy import Hierarchy
    from anonymize.tables import Table

OUT: Final = "out"  # the release folder
ROWS: Final = "rows.arrow"
BATCH_ROWS: Final = 65_536
HIDDEN: Final = "the sentence that says why names values, so it stays in the state folder of that node"


class Failed(Exception):
    """A run that came to no release.

    Args:
        error: What everybody may learn.
        reason: Why, for the people at the data.
        of_rows: Whether other rows might have come to one, so that the absence of one reveals something about these.
    """

    def __init__(self, error: ComineError, reason: str, *, of_rows: bool = False) -> None:
        super().__init__(reason)
        self.error, self.reason, self.of_rows = error, reason, of_rows


@contextmanager
def _reported_as(error: ComineError, *, of_rows: bool = True) -> Iterator[None]:
    """Translates what the library says of the data."""
    try:
        yield
    except ComineError as found:
        raise Failed(error, found.message, of_rows=of_rows) from found


def release(
    spec: AnonymizeSection,
    folder: Path,
    dataset: str,
    persons: Sequence[str],
    me: str,
) -> dict[str, Any]:
    """Makes a release folder and the Arrow stream of its rows.

    Args:
        spec: The request, with the dataset's own source.
        folder: Of this run; hierarchies that came with the request are in it.
        dataset: Its name.
        persons: Its columns of ids, where it has them: a person has one row.
        me: This party.

    Returns:
        What the node needs of the certificate.

    Raises:
        Failed: There is no release.
    """
    from anonymize.verifier import RELEASE_CSV

    of = f"the dataset '{dataset}' of {me}"
    if spec.engine == "blocks":  # as the dataset's owner says
        certificate = _of_blocks(spec, folder, of, persons)
    else:
        certificate = _of_memory(spec, folder, of, persons)
    _write_rows(folder)
    return {
        "rows": certificate.hashes.release[RELEASE_CSV],
        "certificate": certificate.digest,
        "published": certificate.published,
    }


def _of_memory(spec: AnonymizeSection, folder: Path, of: str, persons: Sequence[str]) -> Certificate:
    from dataclasses import replace

    from anonymize.uniqueness import check_persons
    from crypto.primitives.randomness import Randomness
    from jobs.anonymization.folder import write_folder
    from jobs.anonymization.inputs import Inputs, read_source, requirements_of, sensitive_levels, table_of
    from jobs.anonymization.running import run
    from party.services.anonymization.sample import FILE as SAMPLE
    from party.services.anonymization.sample import sample_of

    with _reported_as(_unreadable(of), of_rows=False):
        data = read_source(spec, folder)
    columns = _taken(spec, data.column_names, of)
    taken = data.select(columns)
    with _reported_as(_unfit(of)):
        check_persons(data, [name for name in persons if name in data.column_names], ())
        del data
        table = table_of(spec, taken)
    trees = _hierarchies(spec, folder, table, of)
    with _reported_as(_no_release(spec, of)):
        inputs = Inputs(spec, None, table, trees, sensitive_levels(spec), requirements_of(spec, trees), None)
        found = run(inputs)  # sorted: in the table's order, rows of two releases could be put side by side
    # A digest of the source would let anyone who knows all of it but one cell try what that cell holds: it has none.
    certificate = write_folder(folder / OUT, replace(inputs, hierarchy_files={}), found)
    sample = sample_of(table, taken.num_rows, found, Randomness.from_os())
    if sample is not None:
        (folder / SAMPLE).write_text(sample.model_dump_json(), encoding="utf-8")
    return certificate


def _of_blocks(spec: AnonymizeSection, folder: Path, of: str, persons: Sequence[str]) -> Certificate:
    from anonymize.blocks.identifying import repeated
    from anonymize.uniqueness import refuse_repeated
    from jobs.anonymization.in_blocks import lies_in_blocks, opened_source, run_blocks, table_in_blocks, write_folder
    from jobs.anonymization.inputs import Inputs, requirements_of, sensitive_levels

    try:
        lies_in_blocks(spec, folder)
    except ConfigurationError as error:  # which speaks of the request alone
        raise Failed(error, error.message) from error
    with ExitStack() as end:
        scratch = Path(end.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        with _reported_as(_unreadable(of), of_rows=False):
            source = end.enter_context(opened_source(spec, folder))
        columns = _taken(spec, source.column_names, of)
        with _reported_as(_unfit(of)):
            own = [name for name in persons if name in source.column_names]
            refuse_repeated(repeated(source.blocks(own), own, scratch) if own else ())
            table = table_in_blocks(spec, source, columns, scratch)
        trees = _hierarchies(spec, folder, table, of)
        with _reported_as(_no_release(spec, of)):
            inputs = Inputs(spec, None, table, trees, sensitive_levels(spec), requirements_of(spec, trees), None)
            found = run_blocks(inputs, scratch)
        return write_folder(folder / OUT, inputs, found, scratch)


def _taken(spec: AnonymizeSection, given: Sequence[str], of: str) -> list[str]:
    """The columns of a request, in the order of the dataset."""
    from party.services.anonymization.strength import released

    columns = released(spec)
    if lacking := [name for name in columns if name not in given]:
        what = f"{of} has no column '{lacking[0]}', of which its policy speaks; its operator has to correct party.toml"
        raise Failed(ConfigurationError(what), what)
    return [name for name in given if name in columns]


def _hierarchies(spec: AnonymizeSection, folder: Path, table: Table, of: str) -> dict[str, Hierarchy]:
    from jobs.anonymization.inputs import hierarchies_of

    trees: dict[str, Hierarchy] = {}
    for name in spec.hierarchies:
        only = spec.model_copy(update={"hierarchies": {name: spec.hierarchies[name]}})
        with _reported_as(ConfigurationError(f"the hierarchy of '{name}' does not fit {of}; {HIDDEN}")):
            trees |= hierarchies_of(only, folder, table)[0]
    return trees


def _unreadable(of: str) -> ComineError:
    return InputDataError(f"{of} cannot be read; {HIDDEN}")


def _unfit(of: str) -> ComineError:
    return InputDataError(
        f"{of} does not fit the configuration: cells are missing (see [anonymize] missing), or are no values of "
        f"their column's kind, or distinguish persons that no k hides; {HIDDEN}"
    )


def _no_release(spec: AnonymizeSection, of: str) -> ComineError:
    return ConfigurationError(
        f'algorithm = "{spec.algorithm}" makes no release of {of} that meets the models within max_suppression = '
        f"{spec.max_suppression}, or they do not suit its columns; allow more, or ask for less; {HIDDEN}"
    )


def _write_rows(folder: Path) -> None:
    """The published rows in batches; few of them are in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from anonymize.verifier import RELEASE_PARQUET

    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pq.ParquetFile(folder / OUT / RELEASE_PARQUET) as file:
        schema = file.schema_arrow
        with pa.OSFile(str(folder / ROWS), "wb") as sink, pa.ipc.new_stream(sink, schema, options=options) as stream:
            for batch in file.iter_batches(BATCH_ROWS):
                stream.write_batch(batch)


def _end_with_the_node() -> None:
    def wait() -> None:
        with suppress(OSError, ValueError):
            sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def outcome_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Does what the task says; what the node learns of it."""
    me, dataset = task["party"], task["dataset"]
    try:
        try:
            spec = AnonymizeSection.model_validate(task["spec"])
            return release(spec, Path(task["folder"]), dataset, task["persons"], me)
        except MemoryError:
            what = f"a release of the dataset '{dataset}' of {me} needs more memory than a run may take (max_memory)"
            raise Failed(ResourceError(what), what) from None
        except ComineError as error:
            what = f"{me} cannot write the release of '{dataset}'; its operator has to see to the disk"
            raise Failed(ResourceError(what), error.message) from error
    except Failed as failed:
        return {
            "error": failed.error.code,
            "sentence": failed.error.message,
            "reason": failed.reason,
            "of_rows": failed.of_rows,
        }


def main() -> None:
    """Reads the task and writes its outcome."""
    task = json.loads(sys.stdin.readline())
    _end_with_the_node()
    with suppress(OSError, ValueError):  # where the system knows no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (task["max_memory"], task["max_memory"]))
    sys.stdout.write(json.dumps(outcome_of(task)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread waits on standard input


if __name__ == "__main__":
    main()
