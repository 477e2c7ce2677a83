"""Specifications of collections for tests."""

from __future__ import annotations

from typing import Any

from jobs.collections.spec import CollectionSpec
from jobs.spec.toml import validate


def spec_of(
    *,
    window: dict[str, Any] | None = None,
    access: dict[str, Any] | None = None,
    continual: dict[str, Any] | None = None,
    budget: dict[str, Any] | None = None,
    sampling: dict[str, Any] | None = None,
    memo: dict[str, Any] | None = None,
    **collection: Any,
) -> CollectionSpec:
    """A collection by GRR over eight numbers, but for what is given."""
    section = {"name": "homepages", "mechanism": "grr", "epsilon": "1.0", "size": 8, **collection}
    if section["mechanism"] in ("sfp", "prefix-extending", "1bit-mean", "rappor") and "size" not in collection:
        del section["size"]
    contents: dict[str, Any] = {"collection": section, "window": window, "continual": continual}
    contents |= {"budget": budget, "sampling": sampling, "memo": memo}
    return validate(CollectionSpec, contents | ({"access": access} if access else {}), "collection.toml")
