"""A plan, as Python holds it: that of `comine job plan`, which shows itself in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable

import jobs.plan
from coordinator.cli.jobs.plan import costs, in_all, sections
from jobs.plan.cost import cost
from jobs.report.text import visible


class Plan(jobs.plan.Plan):
    """What a job is expected to cost each party and what it discloses, in the form `comine.plan/1`.

    Example:
        >>> plan = comine.Federation.connect("federation.toml").plan("job.toml")
        >>> plan.rounds > 0, sorted(plan.parties)
        (True, ['east', 'north', 'south'])
    """

    def __repr__(self) -> str:
        return f"Plan({self.job!r}, {in_all(self)})"

    def _repr_html_(self) -> str:
        heads, rows = costs(self)
        body = "".join(_row("td", row) for row in rows)
        asked = [] if self.summary is None else self.summary.entries(self.coordinator, cost(self))
        return "".join(
            (
                f"<table><tbody>{''.join(_row('td', entry) for entry in asked)}</tbody></table>",
                f"<div><b><bdi>{_text(self.job)}</bdi></b> is expected to cost</div>",
                f"<table><thead>{_row('th', heads)}</thead><tbody>{body}</tbody></table>",
                f"<div>{_text(in_all(self))}; strategy {_text(self.strategy)}.</div>",
                *(_folded(title, sentences) for title, sentences in sections(self).items()),
            )
        )


def _row(cell: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_text(text)}</{cell}>' for text in texts)}</tr>"


def _folded(title: str, sentences: Iterable[str]) -> str:
    lines = "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)
    return f"<details><summary>{_text(title)}</summary><ul>{lines}</ul></details>"


def _text(text: str) -> str:
    return html.escape(visible(text))
