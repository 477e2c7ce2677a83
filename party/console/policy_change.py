"""Rules of a node's file as people change them by its console: what they may, checked before it is written."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from crypto.primitives.randomness import Randomness
from jobs.audit.console_events import PolicyChanged, PolicyPutBack
from jobs.audit.log import AuditLog
from jobs.spec.toml import faults_by_key, parse_toml
from link.errors import ComineError, ConfigurationError, PeerError, ResourceError, UsageError
from link.files import locks
from link.files.private_file import replace_private
from party.config import PartyConfig
from party.console.policy_fields import Field, fields_of, filled_in, normal, read
from party.console.policy_file import Place, rewritten
from party.node.settings import read_settings
from party.own_log import own_log
from party.policy.looser import Direction, direction, direction_of_budget
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import PolicySection, Rules
from party.reloading import reloaded
from party.state.reloads import Answer

_KEY: Final = re.compile(r"\s*([a-z_]+)\s*=|\s*\[+(?:[a-z]+\.)+([a-z_]+)\]+\s*$")
_LOOSER: Final = ("looser", "may be looser")
_PEOPLE: Final = frozenset({"approve", "approval", "approvals"})
_OF_SEVERAL: Final = (
    "is loosened in the file alone while several people have to approve a job; one person could decide for them here"
)


class Part(NamedTuple):
    """A table of the file whose rules may be changed.

    Attributes:
        name: In the names of the form's fields.
        title: As people know it.
        place: Where it is in the file.
        model: Of its keys.
        written: What it holds.
    """

    name: str
    title: str
    place: Place
    model: type[BaseModel]
    written: Mapping[str, Any]

    def fields(self) -> tuple[Field, ...]:
        """The rules that may be changed."""
        return fields_of(self.model)

    def filled_in(self, rule: Field) -> str:
        """What a field of the form holds as long as nobody has changed it."""
        return normal(filled_in(rule, self.written.get(rule.key)))


@dataclass(frozen=True, slots=True)
class Opened:
    """A node's file, to be changed.

    Attributes:
        path: Where it is.
        data: What it holds.
        config: What that means.
        dataset: Whose rules are to be changed; None of those of the node.
        parts: The tables that hold them.
    """

    path: Path
    data: bytes
    config: PartyConfig
    dataset: str | None
    parts: tuple[Part, ...]

    @property
    def needs_several(self) -> bool:
        """Whether some job whose rules these are needs several people."""
        names = self.config.datasets if self.dataset is None else (self.dataset,)
        return any(self.config.policy_of(name).approvals > 1 for name in names)

    @property
    def digest(self) -> str:
        """By which it is known whether the file was changed meanwhile."""
        return hashlib.sha256(self.data).hexdigest()


class Changed(NamedTuple):
    """A rule that is to be another one.

    Attributes:
        name: Of the form's field.
        key: Of the rule.
        title: Of the table that it is in.
        before: As the field held it; empty where it was not written.
        after: As it is filled in.
        direction: Whether it allows more.
    """

    name: str
    key: str
    title: str
    before: str
    after: str
    direction: Direction

    @property
    def is_looser(self) -> bool:
        """Whether it allows more than before, or may."""
        return self.direction in _LOOSER


@dataclass(frozen=True, slots=True)
class Edit:
    """What somebody has filled in.

    Attributes:
        faults: By the name of the form's field, why it cannot be so; under "" what is of no single field.
        data: The file with the change; empty where there are faults.
        changed: The rules that are other ones in it.
    """

    faults: Mapping[str, str]
    data: bytes = b""
    changed: tuple[Changed, ...] = field(default=())

    def lines(self, before: bytes) -> list[tuple[str, str, str]]:
        """Lines that go and come in the file: the sign, the line, and what the change of its rule does, if much."""
        marks = {each.key: each.direction for each in self.changed if each.is_looser}
        come = {each.key for each in self.changed if each.after}
        old, new = (data.decode("utf-8-sig").splitlines() for data in (before, self.data))
        found = []
        for line in difflib.unified_diff(old, new, n=0, lineterm=""):
            if line.startswith(("---", "+++", "@@")) or not line[1:].strip():
                continue
            named = _KEY.match(line[1:])
            key = "" if named is None else named[1] or named[2]
            mark = marks.get(key, "") if line[0] == "+" or key not in come else ""
            found.append((line[0], line[1:], mark))
        return found


def opened(path: Path, dataset: str | None) -> Opened:
    """A node's file as it is now.

    Args:
        path: Where it is.
        dataset: Whose rules are to be changed; None for those of the node.

    Raises:
        ConfigurationError: The file is wrong.
        UsageError: There is no such dataset.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); check its rights") from None
    config = PartyConfig.load(path)
    contents = parse_toml(data, str(path))
    if dataset is None:
        parts: tuple[Part, ...] = (Part("policy", "[policy]", ("policy",), PolicySection, contents.get("policy", {})),)
    else:
        names = [each["name"] for each in contents.get("dataset", ())]
        if dataset not in names:
            raise UsageError(f"{config.party.name} has no such dataset; it has {', '.join(names) or 'none'}")
        number = names.index(dataset)
        tables = contents["dataset"][number]
        parts = tuple(
            Part(name, f"[dataset.{name}]", ("dataset", number, name), model, tables.get(name, {}))
            for name, model in (("policy", Rules), ("privacy", DatasetBudget))
        )
    check_unchanged(path.read_bytes(), hashlib.sha256(data).hexdigest())
    return Opened(path, data, config, dataset, parts)


def edited(file: Opened, form: Mapping[str, str]) -> Edit:
    """The file with what somebody has filled in, as far as that will do.

    Args:
        file: The file.
        form: By the names of fields; what is not in it stays.
    """
    faults: dict[str, str] = {}
    changes: dict[Place, dict[str, Any]] = {}
    rules: list[tuple[Part, Field, str]] = []
    for part in file.parts:
        for rule in part.fields():
            name = f"{part.name}.{rule.key}"
            text = normal(form.get(name, part.filled_in(rule)))
            if text == part.filled_in(rule):
                continue
            try:
                changes.setdefault(part.place, {})[rule.key] = read(rule, text)
            except UsageError as error:
                faults[name] = error.message
            rules.append((part, rule, text))
        contents = {**part.written, **changes.get(part.place, {})}
        found = faults_by_key(part.model, {key: value for key, value in contents.items() if value is not None})
        known = {rule.key for rule in part.fields()}
        faults = {f"{part.name}.{key}" if key in known else "": what for key, what in found.items()} | faults
    if not rules:
        faults[""] = "nothing is other than before"
    if faults:
        return Edit(faults)
    try:
        data = rewritten(file.data, str(file.path), changes)
        after = _checked(file.path, data)
    except ComineError as error:
        return Edit({"": error.message})
    changed = tuple(_changed(file, after, *each) for each in rules)
    refused = {each.name: _OF_SEVERAL for each in changed if each.key in _PEOPLE and each.is_looser}
    if refused and file.needs_several:
        return Edit(refused)
    return Edit({}, data, changed)


def _changed(file: Opened, after: PartyConfig, part: Part, rule: Field, text: str) -> Changed:
    before, key, dataset = file.config, rule.key, file.dataset
    if part.model is DatasetBudget:
        assert dataset is not None
        totals = before.totals_of(dataset), after.totals_of(dataset)
        what = direction_of_budget(key, *totals, after.policy_of(dataset))
    else:
        policies = [each.policy if dataset is None else each.policy_of(dataset) for each in (before, after)]
        what = direction(key, *policies)
    return Changed(f"{part.name}.{key}", key, part.title, part.filled_in(rule), text, what)


def _checked(path: Path, data: bytes) -> PartyConfig:
    """What the file would say, read as a node reads it; paths in it are relative to its folder.

    Raises:
        ComineError: Something in it is wrong.
    """
    draft = path.with_name(f".{path.name}.{Randomness.from_os().bytes(4).hex()}.new")
    try:
        replace_private(draft, data)
        return read_settings(draft)[0].config
    except OSError as error:
        raise _unwritten(path, error) from None
    except ComineError as error:
        raise ConfigurationError(error.message.replace(str(draft), str(path))) from None
    finally:
        draft.unlink(missing_ok=True)


def saved(file: Opened, edit: Edit, by: str) -> Answer | None:
    """Writes the file, and has the node take it up; where that refuses, the file is put back.

    Args:
        file: As `edit` was made from it.
        edit: What is to be written.
        by: Who has it written.

    Returns:
        What the node answers; None where none runs.

    Raises:
        UsageError: Another hand has changed the file meanwhile.
        PeerError: The node does not answer in time; the file stays changed.
        ComineError: It cannot be written, or not be recorded.
    """
    looser = tuple(_place(file, each) for each in edit.changed if each.is_looser)
    with _alone(file), own_log(file.config) as (audit, _):
        event = PolicyChanged(
            by=by,
            before=_digest(file.data),
            after=_digest(edit.data),
            changed=tuple(_place(file, each) for each in edit.changed),
            looser=looser,
        )
        audit.append(event)
        try:
            _write(file.path, edit.data)
        except ResourceError as error:
            audit.append(PolicyPutBack(by=by, file=_digest(file.data), code=error.code))
            raise
        try:
            answer = reloaded(file.config, file.path)
        except PeerError as error:
            raise PeerError(f"{error.message}. The file stays as you have changed it", party=error.party) from None
        if answer is not None and answer.code:
            _put_back(file, edit, audit, by, answer.code)
    return answer


def _put_back(file: Opened, edit: Edit, audit: AuditLog, by: str, code: str) -> None:
    check_unchanged(file.path.read_bytes(), hashlib.sha256(edit.data).hexdigest())
    _write(file.path, file.data)
    audit.append(PolicyPutBack(by=by, file=_digest(file.data), code=code))


def check_unchanged(data: bytes, digest: str) -> None:
    """Refuses to go on from what is no longer so.

    Raises:
        UsageError: The file is another one.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise UsageError("another hand has changed the node's file meanwhile; open the form anew")


@contextlib.contextmanager
def _alone(file: Opened) -> Iterator[None]:
    """Lets one console write at a time, and only what was made from the file as it is."""
    if file.path.is_symlink():
        raise ConfigurationError(f"{file.path} is a link; change the file that it leads to")
    try:
        with file.path.open("rb") as held:
            locks.lock(held.fileno(), wait=True)
            check_unchanged(file.path.read_bytes(), file.digest)
            yield
    except OSError as error:
        raise _unwritten(file.path, error) from None


def _write(path: Path, data: bytes) -> None:
    try:
        replace_private(path, data, like=path.stat())
    except OSError as error:
        raise _unwritten(path, error) from None


def _unwritten(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"{path} cannot be written ({error.strerror}); the console writes it as the user that it runs as, in its folder"
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _place(file: Opened, each: Changed) -> str:
    return f"{each.title} {each.key}" + ("" if file.dataset is None else f" of {file.dataset}")
