"""The policy as an administrator changes it: a form of its rules, what changes in the file, and what the node says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from console.site import Page, Shown, Visit
from party.console.policy_change import Edit, Opened, check_unchanged, edited, opened, saved
from party.console.policy_fields import normal
from party.policy.in_words import written

PATH: Final = "/policy"
OF_DATASET: Final = "/datasets/{dataset}/policy"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file."""
    found = []
    for path in (PATH, OF_DATASET):
        found += [
            Page(path, partial(_form, party_toml), role="administrator"),
            Page(f"{path}/changes", partial(_changes, party_toml), role="administrator", acts=True),
            Page(f"{path}/save", partial(_save, party_toml), role="administrator", acts=True),
        ]
    return tuple(found)


def _form(party_toml: Path, visit: Visit) -> Shown:
    return _shown(_file(party_toml, visit), visit, Edit({}))


def _changes(party_toml: Path, visit: Visit) -> Shown:
    file = _file(party_toml, visit)
    edit = edited(file, visit.form)
    if edit.faults:
        return _shown(file, visit, edit)
    content = {"file": file, "base": _base(file), "changed": edit.changed, "lines": edit.lines(file.data)}
    return Shown("policy_changes.html.j2", content)


def _save(party_toml: Path, visit: Visit) -> Shown:
    file = _file(party_toml, visit)
    edit = edited(file, visit.form)
    if edit.faults:
        return _shown(file, visit, edit)
    answer = saved(file, edit, visit.person.name)
    return Shown("policy_saved.html.j2", {"file": file, "base": _base(file), "answer": answer})


def _file(party_toml: Path, visit: Visit) -> Opened:
    """The file as it was when the form was opened."""
    found = opened(party_toml, visit.params.get("dataset"))
    if visit.form:
        check_unchanged(found.data, visit.form.get("digest", ""))
    return found


def _base(file: Opened) -> str:
    return PATH if file.dataset is None else f"/datasets/{quote(file.dataset, safe='')}/policy"


def _shown(file: Opened, visit: Visit, edit: Edit) -> Shown:
    above = {} if file.dataset is None else written(file.config)
    parts = [
        {
            "title": part.title,
            "fields": [
                {
                    "rule": rule,
                    "name": (name := f"{part.name}.{rule.key}"),
                    "text": visit.form.get(name, part.filled_in(rule)),
                    "fault": edit.faults.get(name, ""),
                    "open": rule.key in part.written or normal(visit.form.get(name, "")) != "" or name in edit.faults,
                    "above": above.get(rule.key, "") if part.name == "policy" else "",
                }
                for rule in part.fields()
            ],
        }
        for part in file.parts
    ]
    fault = edit.faults.get("", "")
    return Shown("policy_form.html.j2", {"file": file, "base": _base(file), "parts": parts, "fault": fault})
