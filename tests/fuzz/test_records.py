"""What nodes and coordinators keep, and what is verified, made wrong: findings or errors of comine, never a fault.

Audit logs and their heads, result folders down to the messages that parties have signed, releases in Parquet of any
types, databases of a node, and the folders of a coordinator's jobs.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from anonymize.reading import read_parquet as read_rows
from anonymize.verifier import verify as verify_release
from jobs.audit.checks.results import check_result
from jobs.audit.checks.verification import verification
from jobs.audit.log import head_path
from jobs.audit.reading import shown
from jobs.kinds.models.document import MODEL_FILE, pack_model, read_model, unpack_model
from jobs.kinds.packed_itemsets import unpack
from jobs.kinds.release.release import Anonymized
from jobs.results.destination import ESTIMATES_FILE, JOINT_RELEASE
from jobs.results.folder import write_result_folder
from jobs.results.manifest import seal
from ldp.shuffling.route import Route, route_of
from link.errors import ComineError
from link.pki.trust import Trust
from mining.data.loading import load_table, load_transactions
from mining.joint.estimated import unpack_estimates
from mining.partitioned.spark import values
from party.services.queries.log import QueryLog
from party.services.shuffler.store import ShufflerStore
from party.state.ledger import Ledger
from party.state.plan_count import PlanCount
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.examples import examples
from tests.fuzz.mutations import changed, mutated, otherwise
from tests.jobs.audit.kinds import JOBS, RULES, agreed
from tests.jobs.audit.world import PARTIES, World, weekly, with_result

EXAMPLES = int(os.environ.get("COMINE_FUZZ_EXAMPLES", "0"))
FUZZED = examples(
    EXAMPLES or 12,
    EXAMPLES or 50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of cryptography, about odd certificates
    pytest.mark.turn(3),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three parties that have found rules, their logs, and the coordinator's result."""
    return with_result(tmp_path_factory.mktemp("world"), weekly(rules=RULES))


# -- audit logs ------------------------------------------------------------------------------------------------------
@FUZZED
@given(data=st.data())
def test_a_log_made_wrong(world: World, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp() / "log"
    folder.mkdir(exist_ok=True)
    copy = folder / "audit.log"
    log, head = world.log("north").read_bytes(), head_path(world.log("north")).read_bytes()
    if data.draw(st.booleans()):
        head = data.draw(mutated([head]))
    elif data.draw(st.booleans()):
        lines = log.splitlines()
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at] = json.dumps(data.draw(otherwise(json.loads(lines[at]))), separators=(",", ":")).encode()
        log = b"\n".join(lines) + b"\n"
    else:
        log = data.draw(mutated([log]))
    copy.write_bytes(log)
    head_path(copy).write_bytes(head)
    same = (log, head) == (world.log("north").read_bytes(), head_path(world.log("north")).read_bytes())
    assert verification([copy], [], world.trust).good is same
    with contextlib.suppress(ComineError):
        shown(copy)


# -- results of a cluster --------------------------------------------------------------------------------------------
RESULTS: list[Any] = [
    np.arange(12, dtype=np.int64),
    [(1, "x"), (2.5, None)],
    [np.zeros((2, 3), np.uint32), np.float64(0.25), True],
]


@FUZZED
@given(data=st.data())
@example(data=b"\x00")
@example(data=values.to_bytes(None)[:8] + b"[" * 100_000)
@example(data=(10**6).to_bytes(8, "little") + b"[" * 10**6)
def test_a_result_of_a_cluster_made_wrong(data: st.DataObject | bytes) -> None:
    packed = data if isinstance(data, bytes) else data.draw(mutated([values.to_bytes(each) for each in RESULTS]))
    with contextlib.suppress(ValueError):
        values.from_bytes(packed)


# -- result folders --------------------------------------------------------------------------------------------------
SIGNED: dict[str, Any] = {"proposal": control.Proposal, "approval": control.Approval, "release": control.Release}


def _inside(document: Any, data: st.DataObject) -> Any:
    """The same with something else in one of the messages that it holds in base64."""
    places = [document["consents"], *document["consents"]["approvals"], *document["receipts"]]
    place = data.draw(st.sampled_from(places))
    (name,) = SIGNED.keys() & place.keys()
    if data.draw(st.booleans()):
        message = SIGNED[name].FromString(base64.b64decode(place[name]))
        place[name] = base64.b64encode(data.draw(changed(message)).SerializeToString()).decode()
    elif data.draw(st.booleans()):
        place["certificate"] = data.draw(mutated([place["certificate"].encode()])).decode("utf-8", "replace")
    else:
        which = data.draw(st.sampled_from([name, "signature"]))
        place[which] = base64.b64encode(data.draw(mutated([base64.b64decode(place[which])]))).decode()
    return document


@FUZZED
@given(data=st.data())
def test_a_result_made_wrong_inside(world: World, data: st.DataObject) -> None:
    folder = world.folder / "wrong"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world.folder / "result", folder)
    document = json.loads((folder / "result.json").read_text())
    document = _inside(document, data) if data.draw(st.integers(0, 2)) else data.draw(otherwise(document))
    (folder / "result.json").write_text(json.dumps(document))
    seal(folder, world.coordinator)
    check_result(folder, world.trust, {})
    verification([world.log(party) for party in PARTIES], [folder], world.trust)


@pytest.mark.parametrize("decided", [2**63 - 1, -(2**63), 10**12, 253_402_300_800])
def test_a_time_that_no_calendar_has(world: World, tmp_path: Path, decided: int) -> None:
    folder = Path(shutil.copytree(world.folder / "result", tmp_path / "result"))
    document = json.loads((folder / "result.json").read_text())
    for consent in document["consents"]["approvals"]:
        approval = control.Approval.FromString(base64.b64decode(consent["approval"]))
        approval.decided = decided
        consent["approval"] = base64.b64encode(approval.SerializeToString()).decode()
    (folder / "result.json").write_text(json.dumps(document))
    assert any("no calendar has" in found.what for found in check_result(folder, world.trust, {}))


# -- packed results --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, world: World) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in (("model", MODEL_FILE), ("release", JOINT_RELEASE), ("noisy", ESTIMATES_FILE)):
            folder = tmp_path_factory.mktemp(kind) / "result"
            write_result_folder(folder, agreed(*JOBS[kind][0](), world.authority, patch))
            found[kind] = [(folder / name).read_bytes()]
    found["model"].append(pack_model(read_model(found["model"][0])))
    return found


UNPACK: dict[str, Callable[[bytes], object]] = {
    "model": read_model,
    "release": Anonymized.unpack,
    "noisy": unpack_estimates,
}


@pytest.mark.parametrize("kind", UNPACK)
@FUZZED
@given(data=st.data())
def test_a_packed_result_is_read_or_a_value_error(
    kind: str, packed: dict[str, list[bytes]], data: st.DataObject
) -> None:
    """Whoever unpacks says who sent it."""
    if data.draw(st.booleans()):
        sent = data.draw(mutated(packed[kind]))
    else:
        sent = json.dumps(data.draw(otherwise(json.loads(packed[kind][0])))).encode()
    for read in (UNPACK[kind], unpack, unpack_model):
        with contextlib.suppress(ValueError):
            read(sent)


# -- releases of any types -------------------------------------------------------------------------------------------
ODD: dict[str, pa.Array] = {
    "lists": pa.array([["a"], ["b"]]),
    "structs": pa.array([{"a": 1}, {"a": 2}]),
    "maps": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"\xff", b""]),
    "far dates": pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32()),
    "far milliseconds": pa.array([2**62, -(2**62)], pa.int64()).cast(pa.date64()),
    "far times": pa.array([2**63 - 1, -(2**63)], pa.int64()).cast(pa.timestamp("s")),
    "zones": pa.array([0, 1], pa.timestamp("us", "Mars/Olympus")),
    "spans": pa.array([2**63 - 1, 0], pa.int64()).cast(pa.duration("s")),
    "nanoseconds": pa.array([1, 2], pa.int64()).cast(pa.time64("ns")),
    "decimals": pa.array([Decimal("1e30"), Decimal("-1")], pa.decimal256(60, 2)),
    "no numbers": pa.array([float("nan"), float("inf")]),
    "large numbers": pa.array([2**64 - 1, 0], pa.uint64()),
    "halves": pa.array([1.5, 2.0], pa.float16()),
    "nothing": pa.nulls(2),
    "codes": pa.array(["a", "b"]).dictionary_encode(),
    "not text": pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xffa")),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, world: World) -> Path:
    """The result of a joint anonymisation."""
    folder = tmp_path_factory.mktemp("released") / "result"
    with pytest.MonkeyPatch.context() as patch:
        write_result_folder(folder, agreed(*JOBS["release"][0](), world.authority, patch))
    return folder


@pytest.mark.parametrize("kind", ODD)
def test_parquet_of_any_types(kind: str, tmp_path: Path, world: World, released: Path) -> None:
    folder = Path(shutil.copytree(released, tmp_path / "result"))
    seen = pq.read_table(folder / "release.parquet")
    column = ODD[kind]
    for table in (
        pa.table(dict.fromkeys(seen.column_names, column)),
        pa.table({"id": ["1", "2"], "item": column}),
        pa.table({"id": column, "item": column}),
        pa.table({"id": ["1", "2"], "a": column}),
        pa.table({"items": pa.ListArray.from_arrays([0, 1, 2], column)}),
    ):
        path = folder / "release.parquet"
        try:
            pq.write_table(table, path)
        except pa.ArrowException:
            return  # which Parquet does not have
        assert not verify_release(folder).ok
        assert not verification([], [folder], Trust(world.authority.certificate_pem)).good
        verify_release(folder, original=path)
        with contextlib.suppress(ComineError):
            read_rows(path)
        with contextlib.suppress(ComineError):
            load_table(path, "parquet")
        with contextlib.suppress(ComineError):
            load_transactions(path, "parquet")


# -- databases of a node ---------------------------------------------------------------------------------------------
DATABASES: dict[str, Callable[[Path], object]] = {
    "store": Store.open,
    "ledger": Ledger.open,
    "plans": PlanCount.open,
    "queries": QueryLog.open,
    "shuffler": ShufflerStore.open,
}


@pytest.mark.parametrize("kind", DATABASES)
@FUZZED
@given(data=st.data())
def test_a_database_made_wrong(kind: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp() / f"database-{kind}"
    honest = folder / "honest.db"
    if not folder.exists():
        folder.mkdir()
        made: Any = DATABASES[kind](honest)
        made.close()
    for each in folder.glob("wrong.db*"):
        each.unlink()
    (folder / "wrong.db").write_bytes(data.draw(mutated([honest.read_bytes()])))
    with contextlib.suppress(ComineError):
        opened: Any = DATABASES[kind](folder / "wrong.db")
        opened.close()


@FUZZED
@given(data=st.data())
def test_a_route_made_wrong(data: st.DataObject) -> None:
    honest = Route(
        name="weekly",
        id=bytes(16),
        shufflers=("north", "south"),
        collector="coordinator/analyst",
        collector_key=bytes(range(32)),
        size=8,
        minimum=5,
        gateways=(("client/fleet", 10),),
    ).document()
    draw = mutated([honest]) if data.draw(st.booleans()) else otherwise(json.loads(honest)).map(_as_json)
    with contextlib.suppress(ComineError):
        route_of(data.draw(draw))


def _as_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
