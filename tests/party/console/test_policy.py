"""The policy as an administrator changes it: what the form lets through, and what becomes of the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comine.command import run
from console.pages import templates
from console.roles import Person
from console.site import Shown, Visit
from link.errors import UsageError
from party.config import AUDIT_LOG, PartyConfig
from party.console import policy, policy_change, site
from party.console.policy_change import opened
from party.console.policy_fields import fields_of
from party.policy.rules import PolicySection
from party.state.reloads import Answer
from tests.errors import fails
from tests.party.files import write_federation

ADAM = Person("adam", "administrator")
OWN = "[dataset.policy]\nmin_count = 20 # as agreed\n"


@pytest.fixture
def north(tmp_path: Path) -> Path:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    (tmp_path / "state" / "north").mkdir(parents=True)
    path = tmp_path / "north.toml"
    path.write_text(path.read_text().replace('format = "basket"\n', f'format = "basket"\n{OWN}'))
    return path


class Form:
    """The pages of one node, as a person goes through them."""

    def __init__(self, path: Path, dataset: str | None = "baskets") -> None:
        self.path, self.dataset = path, dataset
        self.pages = {page.path: page for page in policy.pages(path)}
        self.base = policy.PATH if dataset is None else policy.OF_DATASET
        self.digest = opened(path, dataset).digest

    def answer(self, step: str, form: dict[str, str]) -> tuple[str, Any, str]:
        params = {} if self.dataset is None else {"dataset": self.dataset}
        page = self.pages[f"{self.base}{step}"]
        assert page.role == "administrator"
        shown = page.answer(Visit(ADAM, params, {}, form))
        assert isinstance(shown, Shown)
        shared = {"site": "north", "pages": [], "person": ADAM, "path": ""}
        folder = Path(site.__file__).parent / "templates"
        text = templates([folder]).get_template(shown.template).render({**shared, **shown.content})
        assert "<b>" not in text
        return shown.template, shown.content, text

    def changes(self, **fields: str) -> tuple[str, Any, str]:
        return self.answer("/changes", self._form(fields))

    def save(self, **fields: str) -> Any:
        return self.answer("/save", self._form(fields))[1]["answer"]

    def _form(self, fields: dict[str, str]) -> dict[str, str]:
        return {"digest": self.digest} | {name.replace("__", "."): text for name, text in fields.items()}


def events(path: Path) -> list[dict[str, Any]]:
    log = path.parent / "state" / "north" / AUDIT_LOG
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_rule_is_shown_changed_and_recorded(north: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, form = north.read_bytes(), Form(north)
    north.chmod(0o640)
    _, content, text = form.answer("", {})
    above = {each["rule"].key: each["above"] for part in content["parts"] for each in part["fields"]}
    assert (above["approve"], above["min_count"], above["epsilon"], "as agreed" in text) == ("auto", "", "", False)
    filled = {
        "policy__min_count": "5",
        "policy__coordinators": "hub\r\nanalyst",
        "privacy__epsilon": "4",
        "privacy__delta": "1e-6",
    }
    name, content, text = form.changes(**filled)
    assert (name, north.read_bytes()) == ("policy_changes.html.j2", before)
    assert [(each.key, each.before, each.direction) for each in content["changed"]] == [
        ("coordinators", "", "stricter"),
        ("min_count", "20", "looser"),
        ("epsilon", "", "may be looser"),
        ("delta", "", "may be looser"),
    ]
    lines = content["lines"]
    assert ("-", "min_count = 20 # as agreed", "") in lines
    assert ("+", "min_count = 5 # as agreed", "looser") in lines
    assert ("+", 'coordinators = ["hub", "analyst"]', "") in lines
    assert 'name="policy.min_count" value="5"' in text
    assert form.save(**filled) is None  # no node runs
    after = north.read_bytes()
    assert PartyConfig.load(north).policy_of("baskets").min_count == 5
    assert north.stat().st_mode & 0o777 == 0o640
    (event,) = (each for each in events(north) if each["event"] == "policy-changed")
    assert event["fields"] == {
        "by": "adam",
        "before": digest(before),
        "after": digest(after),
        "changed": [
            f"{rule} of baskets"
            for rule in (
                "[dataset.policy] coordinators",
                "[dataset.policy] min_count",
                "[dataset.privacy] epsilon",
                "[dataset.privacy] delta",
            )
        ],
        "looser": [
            f"{rule} of baskets"
            for rule in ("[dataset.policy] min_count", "[dataset.privacy] epsilon", "[dataset.privacy] delta")
        ],
    }
    assert run(["audit", "show", str(north)]) == 0
    assert "by adam: [dataset.policy] coordinators of baskets" in capsys.readouterr().out
    assert [each.name for each in north.parent.iterdir() if each.name.endswith(".new")] == []
    with fails("E001"):
        form.save(**filled)  # what was shown was another file


def test_the_policy_of_the_node_is_changed_alike(north: Path) -> None:
    form = Form(north, None)
    rule = '[[approval]]\ndecide = "auto"\ntasks = ["rules"]'
    _, content, _ = form.changes(policy__approve="manual", policy__approval=rule)
    assert [(each.key, each.direction) for each in content["changed"]] == [
        ("approve", "stricter"),
        ("approval", "may be looser"),
    ]
    assert ("+", "[[policy.approval]]", "may be looser") in content["lines"]
    assert form.save(policy__approve="manual", policy__approval=rule) is None
    found = PartyConfig.load(north).policy
    assert (found.approve, found.approval[0].decide) == ("manual", "auto")
    assert Form(north, None).changes(policy__approval=rule)[1]["fault"] == "nothing is other than before"


FAULTS = [
    ("policy.min_count", "0", "greater than or equal to 1"),
    ("policy.min_count", "5 %", "is no number"),
    ("policy.min_count", "nan", "is no number"),
    ("policy.min_support", "2", "must be a fraction"),
    ("policy.approve", "root", "'auto' or 'manual'"),
    ("policy.tasks", "mine <b>", "no task"),
    ("policy.coordinators", "[]", "names nothing"),
    ("policy.approval", "decide", "is not valid TOML"),
    ("policy.approval", '[[approval]]\ndecide = "auto"\n[tls]', "holds something beside"),
    ("policy.columns", 'age = "all"', "list"),
    ("policy.max_deadline", "soon", "30m"),
    ("privacy.epsilon", "4", "needs delta"),
]


@pytest.mark.parametrize(("name", "text", "words"), FAULTS)
def test_what_will_not_do_is_told_beside_its_field(north: Path, name: str, text: str, words: str) -> None:
    before, form = north.read_bytes(), Form(north)
    template, content, page = form.changes(**{name.replace(".", "__"): text})
    assert template == "policy_form.html.j2"
    faults = {each["name"]: each["fault"] for part in content["parts"] for each in part["fields"]} | {
        "": content["fault"]
    }
    assert words in faults["" if name.startswith("privacy") else name]
    assert len([fault for fault in faults.values() if fault]) == 1
    assert (north.read_bytes(), events(north)) == (before, [])
    assert 'role="alert"' in page


def test_what_the_whole_file_does_not_allow_is_told_above_the_form(north: Path) -> None:
    for fields, words in (
        ({"policy__peers": "nowhere"}, "'nowhere' is not in"),
        ({"policy__max_jobs_period": "7d"}, "write max_jobs beside it"),
    ):
        _, content, _ = Form(north).changes(**fields)
        assert words in content["fault"]
        assert ".new" not in content["fault"]


ALONE = [
    ("baskets", "approvals", ""),
    ("baskets", "approve", "auto"),
    ("baskets", "approval", '[[approval]]\ndecide = "auto"'),
    (None, "approve", "auto"),
    (None, "approval", '[[approval]]\ndecide = "auto"'),
]


def test_one_person_does_not_decide_for_several(north: Path) -> None:
    assert Form(north, None).save(policy__approve="manual") is None
    assert Form(north).save(policy__approvals="2") is None
    before = north.read_bytes()
    for dataset, key, text in ALONE:
        form = Form(north, dataset)
        template, content, _ = form.answer("/save", {"digest": form.digest, f"policy.{key}": text})
        assert template == "policy_form.html.j2"
        faults = {each["rule"].key: each["fault"] for part in content["parts"] for each in part["fields"]}
        assert "several people" in faults[key]
    assert north.read_bytes() == before
    assert Form(north).save(policy__approvals="3", policy__min_count="2") is None  # all else may be looser


def test_nothing_but_rules_can_be_changed(north: Path) -> None:
    keys = {field.key for field in fields_of(PolicySection)}
    assert not keys & {"kinds", "engines"}
    before, form = north.read_bytes(), Form(north)
    others = {"policy.kinds": "shell", "policy.engines": "shell", "dataset.source": "/etc/passwd", "policy.source": "x"}
    for step in ("/changes", "/save"):
        template, content, _ = form.answer(step, {"digest": form.digest, **others, "tls.key": "x", "source": "x"})
        assert (template, content["fault"]) == ("policy_form.html.j2", "nothing is other than before")
    hidden = 'x"]\n[[dataset]]\nname = "other"\nsource = "/etc/passwd"'
    assert form.save(policy__withhold=hidden) is None
    assert PartyConfig.load(north).dataset[0].source == str(north.parent / "north.dat")
    assert len(PartyConfig.load(north).dataset) == 1
    assert north.read_bytes() != before


def test_a_file_that_changed_meanwhile_is_left_alone(north: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form(north)
    north.write_text(north.read_text() + "# by another hand\n")
    for step in (form.changes, form.save):
        with pytest.raises(UsageError, match="another hand"):
            step(policy__min_count="5")
    form, real = Form(north), policy_change.edited

    def slowly(*arguments: Any) -> Any:
        found = real(*arguments)
        north.write_text(north.read_text() + "# at the last moment\n")
        return found

    monkeypatch.setattr(policy, "edited", slowly)
    with fails("E001"):
        form.save(policy__min_count="5")
    assert north.read_text().endswith("# at the last moment\n")
    assert events(north)[1:] == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], None]:
    """Has the node answer so."""

    def answers(answer: Answer) -> None:
        monkeypatch.setattr(policy_change, "reloaded", lambda config, path: answer)

    return answers


def test_the_file_is_put_back_where_the_node_refuses_it(north: Path, asked: Callable[[Answer], None]) -> None:
    before = north.read_bytes()
    asked(Answer((), "E100", "the disk is <b>full"))
    _, content, text = Form(north).answer("/save", {"digest": digest(before), "policy.min_count": "5"})
    assert content["answer"].code == "E100"
    assert "The file is again what it was" in text
    assert north.read_bytes() == before
    *_, changed, back = events(north)
    assert (changed["event"], back["event"]) == ("policy-changed", "policy-put-back")
    assert back["fields"] == {"by": "adam", "file": digest(before), "code": "E100"}
    asked(Answer(("dataset baskets changed",)))
    assert Form(north).save(policy__min_count="5").changed == ("dataset baskets changed",)
    assert b"min_count = 5" in north.read_bytes()


def test_a_file_that_cannot_be_written_stays_and_that_is_recorded(north: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, form = north.read_bytes(), Form(north)

    def full(path: Path, data: bytes, *, like: object = None) -> None:
        raise OSError(28, os.strerror(28))

    edit = policy_change.edited(opened(north, "baskets"), {"policy.min_count": "5"})
    with monkeypatch.context() as patch:
        patch.setattr(policy_change, "replace_private", full)
        with fails("E103"):
            policy_change.saved(opened(north, "baskets"), edit, "adam")
    assert (north.read_bytes(), events(north)[-1]["event"]) == (before, "policy-put-back")
    north.rename(north.with_name("elsewhere.toml"))
    north.symlink_to("elsewhere.toml")
    with fails("E100"):
        form.save(policy__min_count="5")
