"""What a node lets leave of its tables, to whom, and how often."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from party.data.dataset_check import check_dataset
from party.services.anonymization.request import spec_of
from protos.v1 import anonymization_pb2 as pb
from tests.integration.anonymization.patients import (
    DATASET,
    FILES,
    PATIENTS,
    World,
    config,
    ended,
    events,
    files,
    patients_of,
    running,
    until,
)
from tests.integration.processes import Organisations
from tests.party.nodes import refused

pytestmark = pytest.mark.turn(3)


@pytest.mark.usefixtures("here")
def test_who_may_not_ask_is_told_so_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        only = DATASET.replace("min_k", 'coordinators = ["analyst"]\nmin_k')
        async with running(tmp_path, only) as world:
            hub = world.stub("hub")
            assert not (await hub.ListDatasets(pb.ListDatasetsRequest())).datasets
            for dataset in ("patients", "baskets", "nothing"):
                request = world.request()
                request.dataset = dataset
                found = await refused(ended(hub.Anonymize(request)))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E300")
                assert found.sentence.startswith(
                    f"the policy of north lets no release of a dataset '{dataset}' leave for 'hub'"
                )
            for name, role in (("phone", "client"), ("south", "party")):
                found = await refused(ended(world.stub(name, role).Anonymize(world.request())))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E201")
            parts = await ended(world.stub("analyst").Anonymize(world.request()))
            assert files(parts) == [pb.ROWS, pb.PARQUET, pb.CERTIFICATE]
            assert [event for event, _ in events(tmp_path)] == [*["release-refused"] * 3, "table-released"]

    asyncio.run(test())


def test_requests_are_judged_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One may have 7 MiB: meanwhile the node answers others."""
    judging: list[threading.Thread] = []

    def judged(*arguments: Any) -> Any:
        judging.append(threading.current_thread())
        return spec_of(*arguments)

    async def test() -> None:
        async with running(tmp_path) as world:
            request = world.request()
            configuration = json.loads(request.configuration)
            request.configuration = json.dumps(configuration | {"sensitive": ["disease"] * 300})
            await refused(ended(world.stub("hub").Anonymize(request)))
            assert judging
            assert threading.main_thread() not in judging

    monkeypatch.setattr("party.services.anonymization.service.spec_of", judged)
    asyncio.run(test())


def test_a_node_without_the_table_releases_nothing_and_keeps_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.partition("[dataset.anonymization]")[0]) as world:
            assert await world.hub.datasets() == []
            assert "lets no release" in (await refused(ended(world.stub("hub").Anonymize(world.request())))).sentence
            assert not (tmp_path / "state/north/anonymization").exists()

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_the_report_leaves_where_the_policy_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.replace("min_k", "report = true\nmin_k")) as world:
            await world.hub.fetch(world.request(), tmp_path / "out")
            assert {path.name for path in (tmp_path / "out").iterdir()} == FILES | {"report.html"}
            assert events(tmp_path)[-1][1]["report"] is True

    asyncio.run(test())


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "ppir"])
@pytest.mark.usefixtures("here")
def test_the_order_of_the_table_does_not_leave(tmp_path: Path, algorithm: str) -> None:
    """Neither by place nor by two releases side by side can a row be told from others that show the same."""

    async def test() -> None:
        theirs = DATASET.replace('"mondrian"]', '"mondrian", "ppir"]')
        async with running(tmp_path, theirs) as world:
            request = world.request(algorithm=algorithm)
            if algorithm == "ppir":
                told = json.loads(request.configuration)
                told |= {"quasi_identifiers": ["age"], "max_suppression": "0", "ppir": {"ranges": {"age": 5}}}
                request.configuration = json.dumps(told | {"model": {}})
            await world.hub.fetch(request, tmp_path / "out")
            rows = (tmp_path / "out/release.csv").read_text().splitlines()[1:]
            cells = [tuple(row.rsplit(",", 1)) for row in rows]
            assert [own for own, _ in cells] == sorted(own for own, _ in cells)
            for own in {own for own, _ in cells}:
                diseases = [disease for each, disease in cells if each == own]
                assert diseases == sorted(diseases)

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_different_releases_are_counted_and_equal_ones_are_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.replace("max_releases = 3", "max_releases = 2")) as world:
            first = await world.hub.fetch(world.request(), tmp_path / "out")
            assert await world.hub.fetch(world.request(), tmp_path / "out") == first
            await world.hub.fetch(world.request(model={"k": 20}), tmp_path / "other")
            found = await refused(ended(world.stub("analyst").Anonymize(world.request(model={"k": 10}))))
            assert found.code == "E300"
            assert "2 different releases of the rows of 'patients' leave in all (rule max_releases)" in found.sentence
            assert await world.hub.fetch(world.request(), tmp_path / "out") == first
            # A known request on other rows is another release.
            (tmp_path / "patients.csv").write_text(PATIENTS.replace("p0,Secret0,20", "p0,Secret0,59"))
            found = await refused(ended(world.stub("hub").Anonymize(world.request())))
            assert "(rule max_releases)" in found.sentence
        again = World(Organisations(tmp_path, {}, world.authority))
        await again.start()
        try:
            found = await refused(ended(again.stub("hub").Anonymize(again.request(model={"k": 10}))))
            assert "(rule max_releases)" in found.sentence
        finally:
            await again.stop()

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_reload_forgets_no_release(tmp_path: Path) -> None:
    """A dataset that goes and comes back, or has another name by now, has its releases."""

    async def test() -> None:
        async with running(tmp_path) as world:
            first = await world.hub.fetch(world.request(), tmp_path / "out")
            file = tmp_path / "north.toml"
            file.write_text(file.read_text().replace("max_releases = 3", "max_releases = 1"))
            assert await world.node.reload(file) == ("dataset patients changed",)
            other = world.request(model={"k": 20})
            assert "(rule max_releases)" in (await refused(ended(world.stub("hub").Anonymize(other)))).sentence
            assert await world.hub.fetch(world.request(), tmp_path / "out") == first
            file.write_text(file.read_text().replace('name = "patients"', 'name = "people"'))
            assert await world.node.reload(file) == ("dataset patients removed", "dataset people added")
            assert "lets no release" in (await refused(ended(world.stub("hub").Anonymize(other)))).sentence
            other.dataset = "people"
            assert "(rule max_releases)" in (await refused(ended(world.stub("hub").Anonymize(other)))).sentence

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_requests_that_come_to_nothing_are_counted(tmp_path: Path) -> None:
    """Else who asks for ever smaller k would learn the greatest that the rows allow."""

    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 2")
        async with running(tmp_path, dataset) as world:
            hub, analyst = world.stub("hub"), world.stub("analyst")
            await world.hub.fetch(world.request(), tmp_path / "out")
            for stub, k in ((hub, 400), (hub, 400), (analyst, 300)):
                assert (await refused(ended(stub.Anonymize(world.request(model={"k": k}))))).code == "E100"
            for k in (400, 299, 10):
                found = await refused(ended(hub.Anonymize(world.request(model={"k": k}))))
                assert found.code == "E300"
                assert "lets 2 requests for releases of 'patients' come to nothing" in found.sentence
            await world.hub.fetch(world.request(), tmp_path / "out")

    asyncio.run(test())


def test_who_hangs_up_on_a_run_has_used_it_up(tmp_path: Path) -> None:
    """Else whoever sees that a run lasts longer than failing ones would learn for nothing that the rows suffice."""

    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 2")
        async with running(tmp_path, dataset) as world:
            analyst = world.stub("analyst")
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            for k in (20, 21):
                asking = analyst.Anonymize(world.request(model={"k": k}))
                await until(lambda: runs.processes)
                asking.cancel()
                await until(lambda: not runs.processes)
            found = await refused(ended(analyst.Anonymize(world.request(model={"k": 22}))))
            assert (found.code, "rule max_failures" in found.sentence) == ("E300", True)

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_a_run_that_succeeds_is_no_failure(tmp_path: Path) -> None:
    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 1")
        async with running(tmp_path, dataset) as world:
            hub = world.stub("hub")
            for k in (10, 5, 10, 5):
                await ended(hub.Anonymize(world.request(model={"k": k})))
            assert (await refused(ended(hub.Anonymize(world.request(model={"k": 400}))))).code == "E100"

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_requests_at_once_do_not_fail_more_often_than_they_may(tmp_path: Path) -> None:
    async def test() -> None:
        dataset = DATASET.replace("max_releases = 3", "max_releases = 3\nmax_failures = 1")
        async with running(tmp_path, dataset) as world:
            hub = world.stub("hub")
            asking = [refused(ended(hub.Anonymize(world.request(model={"k": k})))) for k in (300, 301, 302)]
            assert sorted(found.code for found in await asyncio.gather(*asking)) == ["E100", "E300", "E300"]

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_who_asks_may_describe_columns_where_the_policy_lets_him(tmp_path: Path) -> None:
    async def test() -> None:
        theirs = DATASET.replace("min_k", 'describe = "request"\nmin_k')
        async with running(tmp_path, theirs) as world:
            (tmp_path / "rows.csv").write_text("m;any\nf;any\n")
            config(tmp_path, "k = 5", 'k = 5\n[anonymize.hierarchies]\nsex = { file = "rows.csv", separator = ";" }')
            await world.hub.fetch(world.request(), tmp_path / "out")
            request = world.request()
            request.hierarchies["sex"] = "m,any\nx,any\n"
            found = await refused(ended(world.stub("hub").Anonymize(request)))
            assert found.code == "E100"
            assert found.sentence.startswith("the hierarchy of 'sex' does not fit the dataset 'patients' of north")
            assert "'f'" not in found.sentence
            reason = tmp_path / "state/north/anonymization/patients.reason"
            assert '"f"' in reason.read_text()
            assert reason.stat().st_mode & 0o077 == 0
            reason.unlink()
            request = world.request()
            request.hierarchies["name"] = "Secret1,any\n"
            found = await refused(ended(world.stub("hub").Anonymize(request)))
            assert "[anonymize.hierarchies] describes 'name', which the request does not take" in found.sentence
            assert not reason.exists()  # the data were not looked at

    asyncio.run(test())


@pytest.mark.usefixtures("here")
def test_wrong_data_are_told_without_their_values(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            hub = world.stub("hub")
            for patients, code, words in (
                (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,ancient"), "E101", "does not fit the configuration"),
                (PATIENTS.replace("p3,Secret3,41", "p3,Secret3,777"), "E100", "the hierarchy of 'age' does not fit"),
                (PATIENTS.replace("sex,", "gender,", 1), "E100", "has no column 'sex', of which its policy speaks"),
                ('"' + PATIENTS, "E101", "the dataset 'patients' of north cannot be read"),
            ):
                (tmp_path / "patients.csv").write_text(patients)
                found = await refused(ended(hub.Anonymize(world.request())))
                assert (found.code, words in found.sentence) == (code, True), found.sentence
                for secret in ("ancient", "777", "Secret", str(tmp_path)):
                    assert secret not in found.sentence
                assert events(tmp_path)[-1][1]["reason"] == found.sentence
            (tmp_path / "patients.csv").unlink()
            assert (await refused(ended(hub.Anonymize(world.request())))).code == "E101"

    asyncio.run(test())


@pytest.mark.parametrize(
    ("patients", "more"),
    [
        (PATIENTS, {}),
        (PATIENTS.replace("\np1,", "\np0,"), {"insensitive": []}),
    ],
    ids=["a name for each row", "two rows of one id"],
)
@pytest.mark.usefixtures("here")
def test_no_release_leaves_that_tells_persons_apart_whatever_k_is(
    tmp_path: Path, patients: str, more: dict[str, Any]
) -> None:
    """Nor does whoever asks have the word that allows it: the owner alone does."""
    dataset = DATASET.replace("columns = {", 'columns = { name = ["insensitive"],')
    keys = {"algorithm": "mondrian", "insensitive": ["name"], **more}

    async def test() -> None:
        async with running(tmp_path, dataset, patients) as world:
            found = await refused(ended(world.stub("hub").Anonymize(world.request(**keys))))
            assert (found.code, "distinguish persons that no k hides" in found.sentence) == ("E101", True)
            for word in ("allow_unique", "allow_repeated"):
                found = await refused(ended(world.stub("hub").Anonymize(world.request(**keys, **{word: ["name"]}))))
                assert f"the request has '{word}', which the node knows itself" in found.sentence
            section = patients_of(tmp_path)
            assert check_dataset(section).problem != ""

    asyncio.run(test())
