"""How a result shows itself in a notebook: its figures, the first of what was found, and who learnt what."""

from __future__ import annotations

from itertools import islice
from typing import Final

from jobs.report.content import entries, figures
from jobs.report.render import render
from jobs.report.tables import top
from jobs.results.record import ResultRecord
from jobs.statement import statement

_SHOWN: Final = 5
_LINES: Final = 20  # of a model


def notebook(result: ResultRecord) -> str:
    """A fragment of HTML that loads nothing and takes its colours from where it stands."""
    itemsets, rules = result.tables.get("itemsets"), result.tables.get("rules")
    counted = result.finding is None or result.finding.account(result.spec).get("counted") is not False
    methods, use = ((), "") if result.finding is None else result.finding.methods(result.spec)
    by = "lift" if rules is not None and "lift" in rules.column_names else "count"
    return render(
        "notebook.html.j2",
        job=result.spec.job,
        simulated=result.simulated,
        figures=figures(result),
        methods=methods,
        use=use,
        elsewhere=result.is_elsewhere,
        lines=[] if result.finding is None else list(islice(result.finding.lines(), _LINES)),
        counted=counted,
        itemsets=[] if itemsets is None else top(itemsets, "count" if counted else "length", _SHOWN, least_items=2),
        rules=[] if rules is None else top(rules, by, _SHOWN) if counted else rules.slice(0, _SHOWN).to_pylist(),
        by=by,
        summary=entries(result),
        statement=statement(result.spec).prose(),
    )
