"""How a result shows itself in a notebook: its figures, the first of what was found, and who learnt what."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from jobs.report.content import elsewhere, figures
from jobs.report.render import render
from jobs.report.tables import top
from jobs.statement import statement

if TYPE_CHECKING:
    from jobs.findings import Result

_SHOWN: Final = 5
_LINES: Final = 20  # of a model


def notebook(result: Result) -> str:
    """A fragment of HTML that loads nothing and takes its colours from where it stands."""
    itemsets, rules = result.itemsets_table, result.rules_table
    counted = result.found is None or result.found.counted
    by = "lift" if rules is not None and "lift" in rules.column_names else "count"
    return render(
        "notebook.html.j2",
        job=result.spec.job,
        simulated=result.simulated,
        figures=figures(result),
        mines=result.spec.mines,
        elsewhere=elsewhere(result),
        lines=[] if result.trained is None else list(islice(result.trained.lines(), _LINES)),
        counted=counted,
        itemsets=[] if itemsets is None else top(itemsets, "count" if counted else "length", _SHOWN, least_items=2),
        rules=[] if rules is None else top(rules, by, _SHOWN) if counted else rules.slice(0, _SHOWN).to_pylist(),
        by=by,
        statement=statement(result.spec).prose(),
    )
