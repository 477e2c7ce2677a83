"""`model.json` and what parties sign: equal for equal models, and nothing else is read."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comine
from jobs.kinds.models.document import model_document, pack_model, read_model, unpack_model
from jobs.kinds.models.model import Model
from jobs.schema import generate
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.model_jobs_world import TASKS, Task, job, people, pooled, table

pytestmark = pytest.mark.turn(3)

SCHEMA = json.loads(generate("model"))


def made(task: Task, rows: int = 40, seed: int = 2) -> Model:
    return pooled(job(task), people(rows, seed))


@pytest.mark.parametrize("task", TASKS)
@given(st.integers(3, 80), st.integers(0, 1 << 16))
@examples(4, 20)
def test_what_is_packed_is_unpacked(task: Task, n_rows: int, seed: int) -> None:
    model, rows = made(task, n_rows, seed), table(people(30, seed + 1))
    packed = pack_model(model)
    found = unpack_model(packed)
    assert (found.task, found.n_rows) == (model.task, model.n_rows)
    assert pack_model(found) == packed
    assert (found.predict(rows) == model.predict(rows)).all()
    assert list(found.lines()) == list(model.lines())
    jsonschema.validate(model_document(model), SCHEMA)


@pytest.mark.parametrize("task", TASKS)
def test_every_number_is_looked_at(task: Task) -> None:
    """A document with any one number or text changed is refused, or is another model that signs other bytes."""
    packed = pack_model(made(task, 25))
    for changed in _changes(json.loads(packed)):
        bad = json.dumps(changed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert bad != packed
        try:
            found = unpack_model(bad)
        except ValueError:
            continue
        assert pack_model(found) == bad


@pytest.mark.parametrize(
    ("task", "change", "words"),
    [
        ("naive-bayes", {"priors": [1.0, 0.0, 0.0]}, "contradicts itself"),
        ("naive-bayes", {"n_rows": 39}, "not all rows"),
        ("naive-bayes", {"class_counts": [40]}, "not as many entries"),
        ("naive-bayes", {"smoothing": "1E+999999999"}, "no model of this version"),
        ("naive-bayes", {"smoothing": "-1"}, "impossible parameters"),
        ("naive-bayes", {"schema": "comine.model/2"}, "no model of this version"),
        ("decision-tree", {"n_rows": 41}, "not all rows"),
        ("decision-tree", {"nodes": []}, "not all rows"),
        ("decision-tree", {"min_rows": 0}, "impossible parameters"),
        ("k-means", {"n_rows": 2**60}, "not all rows"),
        ("k-means", {"iterations": 101}, "too many iterations"),
        ("k-means", {"clusters": []}, "not as many entries"),
        ("k-means", {"start": [["x", "120"]] * 3}, "no model of this version"),
        ("k-means", {"task": "k-medians"}, "no model of this version"),
    ],
)
def test_what_is_refused(task: Task, change: dict[str, Any], words: str) -> None:
    contents = json.loads(pack_model(made(task)))
    with pytest.raises(ValueError, match=words):
        unpack_model(json.dumps({**contents, **change}, sort_keys=True, separators=(",", ":")).encode())


def test_impossible_trees_and_clusters() -> None:
    contents = json.loads(pack_model(made("decision-tree")))
    for change, words in [
        (lambda nodes: nodes[1].update(parent=len(nodes)), "does not follow its parent"),
        (lambda nodes: nodes[1].update(parent=None), "does not follow its parent"),
        (lambda nodes: nodes[0].update(column=None, cut=None), "as many entries"),
        (lambda nodes: nodes[1]["counts"].__setitem__(0, 99), "branches are not its own"),
        (lambda nodes: nodes[0].update(column="weight"), "is not in"),
    ]:
        changed = json.loads(json.dumps(contents))
        change(changed["nodes"])
        with pytest.raises(ValueError, match=words):
            read_model(json.dumps(changed))
    contents = json.loads(pack_model(made("k-means")))
    contents["clusters"][0]["fixed"][0] = 1 << 40
    with pytest.raises(ValueError, match="outside the bounds"):
        read_model(json.dumps(contents))


def test_bytes_that_are_no_model() -> None:
    packed = pack_model(made("k-means"))
    for bad in (b"", b"[]", b"{", packed[:-1], packed + b" ", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"model"):
            unpack_model(bad)


def test_a_model_is_loaded_and_applied(tmp_path: Path) -> None:
    model = made("decision-tree")
    (tmp_path / "model.json").write_text(json.dumps(model_document(model), indent=2))
    frame = pa.table({name: cells for name, cells in people(20, 9).items() if name != "class"})
    for place in (tmp_path, tmp_path / "model.json"):
        assert comine.load_model(place).predict(frame).tolist() == model.predict(frame).tolist()
    assert repr(model) == "Model(DecisionTree, 3 attributes, 40 rows)"
    assert model.classes == ("well", "ill", "")
    with fails("E101"):
        model.predict(frame.drop(["smoker"]))
    with fails("E101"):
        comine.load_model(tmp_path / "nothing.json")
    (tmp_path / "model.json").write_text("{}")
    with fails("E101"):
        comine.load_model(tmp_path)


def test_numbers_are_read_as_they_are_written() -> None:
    spec = job("naive-bayes", smoothing="0.50", variance_smoothing="1E-9")
    document = model_document(pooled(spec, people(30, 1)))
    assert (document["smoothing"], document["variance_smoothing"]) == ("0.50", "1E-9")
    (smoker, *_) = document["attributes"]
    for counts, shares in zip(smoker["counts"], smoker["probabilities"], strict=True):
        exact = [(count + Decimal("0.5")) / (sum(counts) + 1) for count in counts]
        assert shares == pytest.approx([float(each) for each in exact])


def _changes(contents: Any) -> Any:
    """The same document with one number or text changed, for each of them."""
    if isinstance(contents, dict):
        for key, value in contents.items():
            yield from ({**contents, key: other} for other in _changes(value))
    elif isinstance(contents, list):
        for place, value in enumerate(contents):
            yield from ([*contents[:place], other, *contents[place + 1 :]] for other in _changes(value))
    elif isinstance(contents, bool):
        yield not contents
    elif isinstance(contents, int | float):
        yield contents + 1
    elif isinstance(contents, str):
        yield contents + "1"
    else:
        yield 1
