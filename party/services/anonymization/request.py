"""What a coordinator asks for, read with no more trust than a stranger's words deserve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from jobs.anonymization.hierarchy_spec import FileEntry
from jobs.anonymization.spec import OF_SOURCE, AnonymizationSpec, AnonymizeSection
from jobs.spec.toml import validate
from link.errors import ConfigurationError
from link.files.json_text import read_json
from party.config import DatasetSection
from party.services.anonymization.policy import AnonymizationRules, check_request, described
from party.services.anonymization.strength import released
from protos.v1 import anonymization_pb2 as pb

OF_FILES: Final = OF_SOURCE | {"identifiers", "allow_repeated", "allow_unique", "engine"}
"""Keys of `[anonymize]` that a request lacks: the node knows its data, and what is not named stays there."""

_ENGINES: Final = {"memory": "memory", "processes": "blocks"}


def spec_of(
    request: pb.AnonymizeRequest, dataset: DatasetSection, rules: AnonymizationRules, coordinator: str, me: str
) -> AnonymizeSection:
    """The configuration that a request amounts to, on the dataset's own source.

    Hierarchies that came with it are named as files `hierarchy-0.csv` and so on, in the order of their columns; see
    `files_of`.

    Raises:
        ConfigurationError: It is no configuration, or says what only the node may say.
        PolicyDenied: The policy refuses it; the sentence names the rule.
    """
    asked = _contents(request.configuration)
    trees = asked.get("hierarchies", {})
    if not isinstance(trees, dict) or any(_is_file(entry) for entry in trees.values()):
        raise ConfigurationError(
            "the request names files of hierarchies, and a node opens none that others name; send their rows"
        )
    sent = {
        name: {"builder": "file", "file": file, "separator": ","}
        for file, name in zip(files_of(request), sorted(request.hierarchies), strict=True)
    }
    if both := sorted(sent.keys() & trees.keys()):
        raise ConfigurationError(f"the request has two hierarchies of '{both[0][:100]}'; send one")
    if sent:
        asked["hierarchies"] = trees | sent
    spec = validate(AnonymizationSpec, {"anonymize": asked | source_of(dataset)}, "the request").anonymize
    check_request(rules, spec, coordinator, me)
    check_columns(spec)
    return described(rules, spec)


def check_columns(spec: AnonymizeSection) -> None:
    """Refuses what is said of columns that the request does not take: seen here, it needs no look at the data."""
    taken, sensitive = set(released(spec)), set(spec.sensitive)  # of a request each may be as long as it is
    for table, names in (("columns", spec.columns), ("hierarchies", spec.hierarchies)):
        for name in names:
            if name not in taken:
                raise ConfigurationError(
                    f"[anonymize.{table}] describes '{name[:100]}', which the request does not take; leave it out"
                )
    for key, entries in spec.model.entries.items():
        for entry in entries:
            for name in entry.columns_of(spec.sensitive):
                if name not in sensitive:
                    raise ConfigurationError(
                        f"[anonymize.model] {key} protects '{name[:100]}', which the request does not take as "
                        "sensitive; list it under sensitive, or take the model off it"
                    )


def files_of(request: pb.AnonymizeRequest) -> dict[str, str]:
    """The hierarchies of a request as files: by name, their contents."""
    return {f"hierarchy-{i}.csv": request.hierarchies[name] for i, name in enumerate(sorted(request.hierarchies))}


def as_json(spec: AnonymizeSection) -> dict[str, Any]:
    """A configuration as JSON values, from which the same one is read."""
    return spec.model_dump(mode="json", by_alias=True, exclude_unset=True)


def digest_of(spec: AnonymizeSection, files: Mapping[str, str]) -> bytes:
    """A digest of what is asked: equal for equal requests of the same dataset under the same policy.

    By which password the source is read makes no other request.
    """
    asked = {key: value for key, value in as_json(spec).items() if key not in ("password_env", "password_file")}
    text = json.dumps([asked, dict(files)], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _contents(configuration: str) -> dict[str, Any]:
    try:
        found = read_json(configuration)
    except (ValueError, RecursionError):
        raise ConfigurationError("the request's configuration is no JSON") from None
    if not isinstance(found, dict):
        raise ConfigurationError("the request's configuration is no JSON object")
    if own := sorted(OF_FILES & found.keys()):
        raise ConfigurationError(
            f"the request has '{own[0]}', which the node knows itself; it names a dataset and the columns that leave"
        )
    return found


def _is_file(entry: object) -> bool:
    return (
        isinstance(entry, str | FileEntry)
        or not isinstance(entry, dict)
        or "file" in entry
        or entry.get("builder") == "file"
    )


def source_of(dataset: DatasetSection) -> dict[str, Any]:
    """Where a dataset is, in the keys of a configuration."""
    given = dataset.model_dump(mode="json", include=set(OF_SOURCE), exclude_none=True)
    given |= {"engine": _ENGINES[dataset.engine]} if dataset.engine in _ENGINES and dataset.query is None else {}
    return given
