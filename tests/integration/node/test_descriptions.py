"""What a node says of itself, however often it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from protos.v1.control_pb2 import DescribeRequest, Description
from tests.party.nodes import running


def test_what_a_node_says_of_itself_follows_from_its_file_however_often_it_is_asked(tmp_path: Path) -> None:
    """Of other rows it says the same: neither columns nor items, nor how many there are."""

    async def told(folder: Path, rows: list[list[str]]) -> set[bytes]:
        found = set[bytes]()
        async with running(folder, policy="min_support = 0.1", data={"north": rows, "south": rows}) as nodes:
            for number in range(1_000):
                request = DescribeRequest(challenge=number.to_bytes(32, "big"))
                signed = await nodes.clients["north"].stub.Describe(request)
                said = Description.FromString(signed.description)
                said.ClearField("now")
                found.add(said.SerializeToString(deterministic=True))
        return found

    async def test() -> list[set[bytes]]:
        return [
            await told(tmp_path / "few", [["milk"], ["bread"]]),
            await told(tmp_path / "many", [[f"item{number}", "milk"] for number in range(500)]),
        ]

    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    few, many = asyncio.run(test())
    assert len(few) == 1
    assert few == many
    (said,) = map(Description.FromString, few)
    assert {field.name for field, _ in said.ListFields()} <= {
        *("name", "software", "wire", "oldest_wire", "suite", "datasets", "tasks", "peers", "revocations")
    }
    assert [{field.name for field, _ in each.ListFields()} for each in said.datasets] == [{"name", "kind"}]
