from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.aggregator import Aggregator
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from link.errors import InputDataError, ResourceError
from party.services.frequency.intake import Intake
from party.services.frequency.storage import folding, writer
from party.services.frequency.storage.records import Counters
from party.services.frequency.storage.store import FrequencyStore
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, OVER_QUOTA
from tests.errors import fails
from tests.examples import examples
from tests.party.services.frequency.storage.storing import (
    GRR,
    on_disk,
    opened,
    pseudonyms,
    reports,
    store_in,
    sums,
    tally,
)

QUOTAS = {"fleet": 40, "device": 1}

a_batch = st.tuples(st.sampled_from(sorted(QUOTAS)), st.lists(st.integers(0, 60), min_size=1, max_size=10))
steps = st.lists(
    st.one_of(
        st.lists(a_batch, min_size=1, max_size=4),  # sent at once
        st.sampled_from(["restart", "crash", "look"]),
    ),
    max_size=14,
)


def expected_of(
    batches: list[tuple[str, list[int]]], counted: dict[str, set[int]]
) -> tuple[list[list[int]], list[int]]:
    """The statuses of batches that come in this order, and the clients that count."""
    statuses, new = [], []
    for name, clients in batches:
        own = []
        for client in clients:
            if client in counted[name]:
                own.append(DUPLICATE)
            elif len(counted[name]) >= QUOTAS[name]:
                own.append(OVER_QUOTA)
            else:
                counted[name].add(client)
                new.append(client)
                own.append(COUNTED)
        statuses.append(list(map(int, own)))
    return statuses, new


@pytest.mark.parametrize("saves", [1, 1 << 22], ids=["always saved", "seldom saved"])
@given(steps)
@examples(10, 20)
def test_what_is_counted_is_what_a_dictionary_says(saves: int, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "SAVE_BYTES", saves)
        patch.setattr(folding, "SAVE_SEGMENTS", saves)
        patch.setattr(folding, "REST_S", 0.001)
        store = store_in(Path(folder))
        intake = opened(store)
        counted: dict[str, set[int]] = {name: set() for name in QUOTAS}
        clients = Counter[int]()
        for step in steps:
            match step:
                case "look":
                    assert tally(intake) == [clients[value] for value in range(64)]
                case "restart" | "crash":
                    # A crash is played below with processes; here what waits in memory is thrown away.
                    store.close()
                    store = store_in(Path(folder))
                    intake = opened(store)
                case batches:

                    async def send(intake: Intake = intake, batches: Any = batches) -> list[list[int]]:
                        tasks = [
                            asyncio.ensure_future(intake.submit(name, pseudonyms(some), reports(some), QUOTAS[name]))
                            for name, some in batches
                        ]
                        return [answer.tolist() for answer in await asyncio.gather(*tasks)]

                    statuses, new = expected_of(batches, counted)
                    assert asyncio.run(send()) == statuses
                    clients.update(client % 64 for client in new)
        assert tally(intake) == [clients[value] for value in range(64)]
        assert intake.counters.counted == clients.total()
        store.close()


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = store_in(tmp_path)
    yield made
    made.close()


def test_many_submitters_at_once_count_each_client_once(store: FrequencyStore) -> None:
    intake = opened(store)
    rng = np.random.default_rng(1)
    wanted = [rng.integers(0, 3000, 200) for _ in range(64)]
    counted: list[int] = []

    def sends(some: list[Any]) -> None:  # in a thread and a loop of its own
        async def run() -> None:
            for statuses, clients in zip(
                await asyncio.gather(*(intake.submit("fleet", pseudonyms(c), reports(c), 10_000) for c in some)),
                some,
                strict=True,
            ):
                counted.extend(clients[statuses == COUNTED].tolist())

        asyncio.run(run())

    threads = [threading.Thread(target=sends, args=(wanted[i::4],)) for i in range(4)]
    seen = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.append(len(intake.aggregator()))
    assert sorted(counted) == sorted(set(np.concatenate(wanted).tolist()))
    assert seen == sorted(seen)
    assert tally(intake) == np.bincount(np.array(counted) % 64, minlength=64).tolist()


def test_one_device_has_one_report_whatever_pseudonyms_it_makes_up(store: FrequencyStore) -> None:
    intake = opened(store)

    async def run() -> None:
        statuses = await intake.submit("device", pseudonyms(range(5)), reports(range(5)), 1)
        assert statuses.tolist() == [COUNTED, *[OVER_QUOTA] * 4]
        assert (await intake.submit("device", pseudonyms([9]), reports([9]), 1)).tolist() == [OVER_QUOTA]
        assert (await intake.submit("device", pseudonyms([0]), reports([0]), 1)).tolist() == [DUPLICATE]
        # Another submitter has pseudonyms of its own, even where they are equal.
        assert (await intake.submit("other", pseudonyms([0]), reports([0]), 1)).tolist() == [COUNTED]

    asyncio.run(run())
    assert intake.counters == Counters(counted=2, duplicate=1, over_quota=5)


def test_wrong_input_is_refused_before_anything_is_kept(store: FrequencyStore) -> None:
    intake = opened(store)
    other = oracle("grr", 64, 2.0)

    async def run() -> None:
        assert (await intake.submit("a", pseudonyms([]), reports([]), 1)).tolist() == []
        for clients, made in (([1, 2], reports([1])), ([1], reports([1], other))):
            with pytest.raises(InputDataError):
                await intake.submit("a", pseudonyms(clients), made, 1)
        with pytest.raises(InputDataError):
            await intake.submit("a", pseudonyms([1])[:, :15], reports([1]), 1)

    asyncio.run(run())
    assert len(intake.aggregator()) == 0


def test_whoever_stops_waiting_may_send_again(store: FrequencyStore) -> None:
    intake = opened(store)

    async def run() -> list[int]:
        sent = pseudonyms(range(10)), reports(range(10))
        task = asyncio.ensure_future(intake.submit("fleet", *sent, 100))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await intake.submit("fleet", *sent, 100)).tolist()

    assert asyncio.run(run()) == [DUPLICATE] * 10
    assert len(intake.aggregator()) == 10


def test_submitters_wait_where_too_much_waits_to_be_written(
    store: FrequencyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 2000)
    monkeypatch.setattr(writer, "MOST_AT_ONCE", 500)
    intake = opened(store)
    most = 0

    async def one(number: int) -> None:
        nonlocal most
        clients = range(20 * number, 20 * number + 20)
        answer = asyncio.ensure_future(intake.submit("fleet", pseudonyms(clients), reports(clients), 1 << 20))
        await asyncio.sleep(0)
        most = max(most, store.writer.waiting)
        assert not (await answer).any()

    async def run() -> None:
        await asyncio.gather(*(one(number) for number in range(200)))
        await store.room()

    asyncio.run(run())
    assert len(intake.aggregator()) == 4000
    assert most <= 2000 + 20 * (16 + 1)


def test_a_full_disk_refuses_whole_groups_and_the_service_goes_on(store: FrequencyStore, tmp_path: Path) -> None:
    intake = opened(store)

    def limit(pages: int) -> None:
        store.writer.do(lambda c: c.execute(f"PRAGMA max_page_count = {pages}") and None)

    async def send(clients: range) -> list[int]:
        return (await intake.submit("fleet", pseudonyms(clients), reports(clients), 1 << 20)).tolist()

    async def run() -> None:
        assert await send(range(100)) == [COUNTED] * 100
        ((pages,),) = on_disk(tmp_path, "PRAGMA page_count")
        limit(pages + 2)
        refused = await asyncio.gather(*(send(range(k, k + 5000)) for k in (0, 5000, 9000)), return_exceptions=True)
        for each in refused:
            assert isinstance(each, ResourceError)
            assert "database or disk is full" in each.message
        assert len(intake.aggregator()) == intake.counters.counted == 100
        assert await send(range(50, 150)) == [DUPLICATE] * 50 + [COUNTED] * 50  # there is room for a few still
        limit(1 << 30)
        assert await send(range(5000)) == [DUPLICATE] * 150 + [COUNTED] * 4850

    asyncio.run(run())
    assert tally(intake) == np.bincount(np.arange(5000) % 64, minlength=64).tolist()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # which says what failed
def test_a_writer_that_cannot_follow_the_disk_takes_nothing_more(
    store: FrequencyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = opened(store)

    def breaks(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(folding.Folding, "append", breaks)

    async def send() -> list[int]:
        return (await intake.submit("fleet", pseudonyms(range(9)), reports(range(9)), 99)).tolist()

    for _ in range(2):
        with fails("E700"):
            asyncio.run(send())
    monkeypatch.undo()
    store.close()
    again = store_in(tmp_path)
    intake = opened(again)
    assert asyncio.run(send()) == [DUPLICATE] * 9
    assert len(intake.aggregator()) == 9
    again.close()
    store.close = lambda: None  # type: ignore[method-assign]


@pytest.mark.parametrize("name", ["grr", "olh", "oue", "hr", "cms", "ss"])
def test_every_kind_of_report_is_kept_and_read_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_HELD", 2000)  # so that most reports are read from disk again
    mechanism: Mechanism[Any] = oracle(name, 64, 1.0)
    made = mechanism.privatise(np.arange(1000) % 64)
    store = store_in(tmp_path)
    intake = opened(store, mechanism=mechanism)

    async def run(part: slice) -> None:
        clients = range(1000)[part]
        assert not (await intake.submit("fleet", pseudonyms(clients), made[part], 1000)).any()

    for start in range(0, 500, 50):
        asyncio.run(run(slice(start, start + 50)))
    store.close()
    store = store_in(tmp_path)
    intake = opened(store, mechanism=mechanism)
    for start in range(500, 1000, 50):
        asyncio.run(run(slice(start, start + 50)))
    assert intake.aggregator().to_bytes() == Aggregator(mechanism).add(made).to_bytes()
    assert intake.aggregator().to_bytes() == Aggregator(mechanism).add(made).to_bytes()
    store.close()


def test_an_ended_round_leaves_nothing_in_memory(store: FrequencyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding.Folding, "step", lambda self: False)  # the background is late
    intake = opened(store)

    async def run() -> None:
        await intake.submit("fleet", pseudonyms(range(50)), reports(range(50)), 100)

    asyncio.run(run())
    assert store.folder.held > 0
    intake.stop()
    store.end_round("homepages", 0, 2.0, b"", b"", b"")
    assert store.folder.held == 0
    assert intake.open.folding.idle


def test_disk_use_stays_bounded_while_reports_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "SAVE_BYTES", 1 << 16)
    monkeypatch.setattr(folding, "REST_S", 0.001)
    mechanism = oracle("oue", 1024, 1.0)
    made = mechanism.privatise(np.zeros(500, np.int64))
    store = store_in(tmp_path)
    intake = opened(store, mechanism=mechanism)

    async def run() -> None:
        for start in range(0, 20_000, 500):
            await intake.submit("fleet", pseudonyms(range(start, start + 500)), made, 1 << 20)

    asyncio.run(run())
    assert 40 * len(made.to_bytes()) > 2_500_000
    while on_disk(tmp_path, "SELECT coalesce(sum(length(reports)), 0) FROM segments")[0][0] > 1 << 17:
        time.sleep(0.01)
    ((rows, tags),) = on_disk(
        tmp_path, "SELECT count(*), sum(length(tags)) FROM (SELECT tags FROM taken UNION ALL SELECT tags FROM segments)"
    )
    assert tags == 8 * 20_000
    assert rows < 40
    store.close()
    store = store_in(tmp_path)
    assert len(opened(store, mechanism=mechanism).aggregator()) == 20_000
    store.close()


def test_grr_is_what_these_tests_say_it_is() -> None:
    assert tally_of(range(64)) == [1] * 64


def tally_of(clients: range) -> list[int]:
    return sums(Aggregator(GRR).add(reports(clients)))


def test_a_million_reports_in_one_round(tmp_path: Path) -> None:
    mechanism = oracle("olh", 128, 1.0)
    batch, number = 8192, 128
    made = mechanism.privatise(np.arange(batch) % 128)
    store = store_in(tmp_path)
    intake = opened(store, mechanism=mechanism)

    async def send(first: int) -> None:
        clients = np.arange(first * batch, (first + 1) * batch)
        assert not (await intake.submit("fleet", pseudonyms(clients), made, 1 << 21)).any()

    async def run(numbers: range) -> None:
        for start in numbers[::8]:
            await asyncio.gather(*(send(each) for each in numbers[start - numbers[0] :][:8]))

    asyncio.run(run(range(number // 2)))
    store.close()
    store = store_in(tmp_path)
    intake = opened(store, mechanism=mechanism)
    asyncio.run(run(range(number // 2, number)))
    total = intake.aggregator()
    assert len(total) == intake.counters.counted == batch * number
    assert sums(total) == (number * mechanism.tally(made)).tolist()
    assert intake.open.period.nbytes <= 26 * batch * number
    intake.stop()
    store.end_round("homepages", 0, 2.0, total.to_bytes(), b"", b"")
    store.close()
