"""`comine anonymize hide-rules`: transactions from which sensitive rules can no longer be mined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

METHODS = "support, bba, maxmin, exact, rows, confidence or confidence-by-adding"


def hide_rules(
    transactions: Annotated[Path, typer.Argument(metavar="FILE", help="The transactions.")],
    sensitive: Annotated[
        Path, typer.Option("--sensitive", metavar="FILE", help="Rules to hide, one a line: bread, milk -> beer.")
    ],
    min_support: Annotated[
        str, typer.Option("--min-support", metavar="S", help="Of anyone who mines: a fraction, or a count.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the result.")],
    min_confidence: Annotated[
        str, typer.Option("--min-confidence", metavar="C", help="Of anyone who mines.", show_default=True)
    ] = "0",
    method: Annotated[str, typer.Option("--method", help=f"One of {METHODS}.", show_default=True)] = "bba",
    scope: Annotated[
        str,
        typer.Option("--scope", help="rule, or supersets: rules that say more on either side, too.", show_default=True),
    ] = "supersets",
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="Exact: for the solver.", show_default=True)
    ] = 60.0,
    data_format: Annotated[
        str, typer.Option("--format", help="basket, csv, long, wide or parquet.", show_default=True)
    ] = "basket",
    separator: Annotated[
        str | None, typer.Option("--separator", help="Of items in the file; of a basket, blanks by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print hiding.json.")] = False,
) -> None:
    """Change transactions as little as possible, so that sensitive rules can no longer be mined from them."""
    from coordinator.anonymisation.rule_hiding import holds_earlier, read_rules, write_folder
    from coordinator.cli.terminal.console import note, write_json, write_table
    from jobs.documents.hiding import hiding_document
    from jobs.results.destination import check_result_folder
    from link.errors import UsageError
    from mining.data.loading import load_transactions
    from mining.hiding.hide import checked_method, hide
    from mining.hiding.sensitive import Thresholds, checked_scope

    if not 0 < time_limit < float("inf"):
        raise UsageError(f"--time-limit is a number of seconds above 0, not {time_limit:g}")
    thresholds = Thresholds.parse(min_support, min_confidence)
    chosen, covered = checked_method(method), checked_scope(scope)
    check_result_folder(out, holds_earlier)
    rules = read_rules(sensitive)
    data = load_transactions(transactions, data_format, separator=separator)
    found = hide(data, rules, thresholds, method=chosen, scope=covered, time_limit=time_limit)
    document = hiding_document(found, thresholds, covered, len(rules))
    write_folder(out, found.transactions, document)
    if as_json:
        write_json(document.model_dump(mode="json", by_alias=True))
    else:
        rows = [
            (name, str(each.sensitive), str(each.others), str(each.lost), f"{each.misses_cost:.1%}", str(each.ghosts))
            for name, each in (("itemsets", document.itemsets), ("rules", document.rules))
        ]
        write_table(("", "hidden", "others", "lost", "of others", "ghosts"), rows)
    if document.solver is not None and document.solver.status != "optimal":
        note(
            f"the solver was stopped after {document.solver.seconds:g} s: a better solution may exist (gap "
            f"{document.solver.gap:.1%}); give it more with --time-limit"
        )
    note(
        f"{found.deleted:,} items deleted, {found.added:,} added, {found.removed:,} transactions left out "
        f"({found.dissimilarity:.2%} of all cells); written to {out}"
    )
