"""Intersection of three and more parties: what comes out, what is seen, what is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives import okvs
from crypto.primitives.linear_code import encoded, encoding
from crypto.primitives.row_hash import row_hashes
from crypto.protocols.alignment import alignment, zero_shares
from crypto.protocols.alignment.alignment import intersection
from crypto.protocols.alignment.costs import AlignmentSizes, intersection_traffic, intersection_work
from crypto.protocols.alignment.disclosure import declared
from crypto.protocols.alignment.functions import both_values
from crypto.protocols.sums.costs import agreement_traffic
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import oprf
from crypto.protocols.transfers.oprf import PartKey, Parts
from crypto.protocols.transfers.oprf_check import Sent, rows_from
from crypto.protocols.transfers.programmable_oprf import Store
from link.errors import ComineError, MalformedMessage, PeerError, ProtocolViolation
from link.session import Session
from link.traffic import Traffic
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_prf_pb2 import CodeColumns, ProgrammedRows, StoreSeed
from tests.crypto.protocols.alignment.worlds import Held, parties_and_rows, sample
from tests.errors import fails
from tests.examples import crossed, examples, in_turn, slowly, spread
from tests.faulty_world import Rewrite, run_faulty_parties
from tests.traffic import assert_planned
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(8)

LABEL = "intersection"
THREE = NAMES[:3]
MERGER = THREE[0]
KINDS: dict[str, Any] = {kind.DESCRIPTOR.name: kind for kind in (CodeColumns, StoreSeed, ProgrammedRows, Opening)}


def run(held: Held, *, merger: str = MERGER, bound: int | None = None, **options: Any):
    frames = options.get("frames")

    async def role(session: Session):
        secrets = await agree(session)
        rows = await intersection(session, secrets, held[session.me], merger=merger, bound=bound, label=LABEL)
        return rows, session.costs

    return run_parties(
        tuple(held),
        role,
        declared=declared("intersection", tuple(held), merger, bound, LABEL),
        seed=options.get("seed", 0),
        observe=frames.append if frames is not None else None,
        transport=options.get("transport", "memory"),
        deadline_s=240,
    )


def common_to(held: Held) -> set[bytes]:
    return set.intersection(*map(set, held.values()))


def assert_aligned(held: Held, **options: Any) -> None:
    found = run(held, **options)
    (aligned,) = {tuple(held[name][row] for row in rows) for name, (rows, _) in found.items()}
    assert set(aligned) == common_to(held)
    assert len(aligned) == len(common_to(held))


many = examples(1, 5, suppress_health_check=[HealthCheck.too_slow])


# -- what comes out ----------------------------------------------------------------------------------------------------
@many
@given(
    held=parties_and_rows(3, 5, 40),
    place=st.integers(0, 5),
    bound=st.sampled_from([None, 40, 90]),
    seed=st.integers(0, 99),
)
def test_it_is_the_intersection_in_one_order(held, place, bound, seed):
    assert_aligned(held, merger=tuple(held)[place % len(held)], bound=bound, seed=seed)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 0, 1), (0, 90, 90), (1, 1000, 3), (64, 64, 64, 64), (5, 1, 0, 2)])
def test_ragged_and_empty_lists(sizes):
    assert_aligned({name: sample("row", size) for name, size in zip(NAMES, sizes, strict=False)})


@pytest.mark.parametrize("without", THREE)
def test_what_all_but_one_hold_is_not_common(without):
    held = {name: sample("row", 20) + sample("common", 2) for name in THREE}
    held[without] = sample("common", 2)
    assert_aligned(held)


def test_lists_of_several_parts(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    assert_aligned({name: sample("row", 400, 30 * place) for place, name in enumerate(THREE)})


def test_over_streams_under_mutual_tls():
    assert_aligned({name: sample("row", 30 + place, place) for place, name in enumerate(THREE)}, transport="grpc")


def test_nobodys_order_of_rows_shows_in_the_common_order():
    held = {name: sample("row", 9, place) for place, name in enumerate(THREE)}
    turned = {name: own[::-1] if place else own[3:] + own[:3] for place, (name, own) in enumerate(held.items())}
    orders = []
    for rows in (held, turned):
        found = run(rows)
        orders += [[rows[name][row] for row in found[name][0]] for name in rows]
    assert all(order == orders[0] for order in orders)
    assert orders[0] != sorted(orders[0])


def test_rows_that_no_list_can_hold_are_refused():
    with fails("E104"):
        run({"north": sample("row", 65), "south": [], "east": []}, bound=5)
    with pytest.raises(ValueError, match="must be different"):
        run({"north": [b"a", b"a"], "south": [], "east": []})


def test_random_words_add_up_to_zero_at_most_once_in_2_to_40_runs():
    assert alignment.STANDARD_128.max_elements * 2**40 <= 2 ** (8 * zero_shares.WORD_BYTES)


# -- what a party sees, and what several see together ------------------------------------------------------------------
COMMON = sample("common", 5)
CORRUPT = [*COMMON, *sample("all but honest", 6), *sample("own", 8)]
HONEST = (  # worlds: what the third party holds beside what the other two hold; the declared output is the same
    [*COMMON, *sample("h", 4)],
    [*sample("other", 40), *COMMON],
    [*COMMON, *sample("first", 9)],
)


def world(corrupt: Sequence[str], honest: Sequence[bytes]) -> dict[str, list[bytes]]:
    """The first of the two who work together alone holds what is named so; no two of them and a third do."""
    first, second = corrupt
    own = {first: [*CORRUPT, *sample("first", 9)], second: CORRUPT}
    return {name: own.get(name, list(honest)) for name in THREE}


def bits(frames: Sequence[Frame], kind: str, to: Sequence[str]) -> Any:
    """Bits of all that these receive of a kind from others."""
    chosen = [f for f in frames if f.type.endswith("." + kind) and f.receiver in to and f.sender not in to]
    data = b"".join(KINDS[kind].FromString(f.body).data for f in sorted(chosen, key=lambda f: (f.lane, f.seq)))
    return np.unpackbits(np.frombuffer(data, np.uint8))


def assert_fair(samples: Any) -> None:
    """Bits of shape (n, columns), by column and all: fair ones fail with a chance of 10^-8."""
    for axes in ((0,), (0, 1)):
        ones = samples.sum(axis=axes, dtype=np.int64)
        number = samples.size / ones.size
        assert (np.abs(ones - number / 2) <= np.sqrt(number / 2 * np.log(2 * ones.size / 1e-9))).all()


@pytest.mark.parametrize(("corrupt", "honest"), list(product(combinations(THREE, 2), HONEST))[::4])
def test_messages_to_any_two_have_one_distribution_whatever_is_not_common(corrupt, honest):
    columns, rows = [], []
    for seed in range(2):
        frames: list[Frame] = []
        found = run(world(corrupt, honest), bound=64, seed=seed, frames=frames)
        assert {len(own) for own, _ in found.values()} == {len(COMMON)}
        columns.append(bits(frames, "CodeColumns", corrupt))
        rows.append(bits(frames, "ProgrammedRows", corrupt))
    assert_fair(np.array(columns).reshape(-1, 512))
    if MERGER in corrupt:
        assert_fair(np.array(rows).reshape(-1, 64))
    else:
        assert not np.array(rows).size


@pytest.mark.costly
def test_frames_are_the_same_but_for_uniform_bytes():
    shapes = set()
    for honest, place in in_turn(product(HONEST, range(3)), 4):
        frames: list[Frame] = []
        turned = list(world(THREE[:2], honest).values())
        held = dict(zip(THREE, turned[place:] + turned[:place], strict=True))
        run(held, bound=64, frames=frames)
        shapes.add(tuple(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames)))
    assert len(shapes) == 1


@dataclass(frozen=True)
class Run:
    """What a run's parties know.

    Attributes:
        points: The merger's.
        read: What the merger reads from each of the others.
        keys: By lane.
        sents: By lane streams and stores.
        seeds: By lane that of the receiver's store, or of the programmed one.
    """

    points: Any
    read: list[Any]
    keys: dict[str, PartKey]
    sents: dict[str, Sent]
    seeds: dict[str, bytes]


def collect(held: Held, seed: int) -> Run:
    """A run, and what its parties know at its end."""
    points: list[Any] = []
    values: list[Any] = []
    stored: list[Any] = []
    keys: dict[str, PartKey] = {}
    sents: dict[str, Sent] = {}
    frames: list[Frame] = []
    at, answer = Store.at, oprf.answer_check

    def hashing(rows: Any, some: Any, size: int) -> Any:
        found = row_hashes(rows, some, size)
        points.append(some)
        values.append(found.view("<u8"))
        return found

    def reading(store: Store, some: Any) -> Any:
        stored.append(at(store, some))
        return stored[-1]

    async def part_keys(session: Session, *args: Any) -> Any:
        async for key in oprf.part_keys(session, *args):
            keys[session.path] = key
            yield key

    async def answering(session: Session, peer: str, sent: Sent) -> None:
        sents[session.path] = sent
        await answer(session, peer, sent)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(zero_shares, "row_hashes", hashing)
        patched.setattr(Store, "at", reading)
        patched.setattr(zero_shares, "part_keys", part_keys)
        patched.setattr(oprf, "answer_check", answering)
        run(held, bound=64, seed=seed, frames=frames)
    seeds = {f.lane: StoreSeed.FromString(f.body).seed for f in frames if f.type.endswith(".StoreSeed")}
    read = [value ^ store for value, store in zip(values, stored, strict=True)]
    return Run(points[0], read, keys, sents, seeds)


def pad(name: str, peer: str, run: Run, points: Any) -> Any:
    """The pad with a peer as one party computes it by all that it knows, also at points that it does not hold."""
    (key,) = (key for path, key in run.keys.items() if f"/{name} for {peer}/" in path)
    ((path, sent),) = ((path, sent) for path, sent in run.sents.items() if f"/{peer} for {name}/" in path)
    evaluated = okvs.read(key.layout, rows_from(sent.streams), key.layout.places(points, run.seeds[path]))
    return both_values(key, evaluated, points, encoded(points, encoding()), zero_shares.WORD_BYTES).view("<u8")


@pytest.mark.parametrize("parties", slowly([3, 4], now=[0]))
def test_colluders_do_not_learn_who_else_holds_what_one_of_them_lacks(parties):
    """The merger and south, who would learn it if shares of zero did not depend on who holds a point.

    They follow the protocol and use all that they know. At common points the sum of what the merger reads from the
    honest is that of south's pads with them. At points of the merger's that south lacks, it differs from what they can
    compute in uniform bits, whether all others, one of them or nobody holds them; and so does each part of the sum.
    """
    honest = NAMES[2:parties]
    held = {
        "north": [*COMMON, *sample("x", 19), *sample("y", 19), *sample("z", 19)],
        "south": [*COMMON, *sample("s", 19)],
        **{name: [*COMMON, *sample("x", 19)] for name in honest},
    }
    held["east"] += sample("z", 19)
    different: list[Any] = []
    for seed in range(2):
        found = collect(held, seed)
        _, *read = found.read
        pads = [pad("south", name, found, found.points) for name in honest]
        total = np.bitwise_xor.reduce([*read, *pads])
        assert not total[: len(COMMON)].any()
        assert total[len(COMMON) :].all()
        for words in (total, *(one ^ other for one, other in zip(read, pads, strict=True))):
            left = words[len(COMMON) :].reshape(3, 19)
            different.append(np.unpackbits(left.view(np.uint8).reshape(3, 19, 8), axis=2))
    for bits_of_kind in np.array(different).reshape(2, -1, 3, 19, 64).transpose(1, 2, 0, 3, 4).reshape(-1, 2 * 19, 64):
        assert_fair(bits_of_kind)


@pytest.mark.parametrize("parties", slowly([3, 4, 5], now=[0]))
def test_all_others_together_learn_of_one_party_what_is_common_alone(parties):
    """They put together all that they know of pads. At common points these add up to what the merger reads from it.

    What south alone lacks they cannot tell apart from what nobody else holds, or the one does not.
    """
    *colluders, honest = NAMES[:parties]
    x, y, z = (sample(name, 19) for name in "xyz")
    held = {name: [*COMMON, *x, *y, *z] for name in colluders}
    held["south"] = [*COMMON, *z]
    held[honest] = [*COMMON, *x]
    different = []
    for seed in range(2):
        found = collect(held, seed)
        pads = [pad(name, honest, found, found.points) for name in colluders[1:]]
        left = np.bitwise_xor.reduce([found.read[-1], *pads])
        assert not left[: len(COMMON)].any()
        assert left[len(COMMON) :].all()
        different.append(np.unpackbits(left[len(COMMON) :].view(np.uint8).reshape(3, 19, 8), axis=2))
    for bits_of_kind in np.array(different).transpose(1, 0, 2, 3).reshape(3, -1, 64):
        assert_fair(bits_of_kind)


def test_what_all_but_one_of_the_honest_hold_looks_random_to_the_merger():
    """North and south hold it, and east; west does not. What comes from east is no share that they can compute."""
    held = {name: [*COMMON, *sample("x", 40)] for name in NAMES[:4]}
    held["west"] = COMMON
    different = []
    for seed in range(2):
        found = collect(held, seed)
        _, *read = found.read
        pads = [pad("south", name, found, found.points) for name in ("east", "west")]
        for one, other in zip(read, pads, strict=True):
            assert (one ^ other)[len(COMMON) :].all()
            different.append(np.unpackbits((one ^ other)[len(COMMON) :].view(np.uint8), axis=1))
    assert_fair(np.concatenate(different))


def test_stores_of_all_senders_are_the_same_but_for_what_masks_their_hashes():
    """The last 256 rows and those that fill up the last block of the store's own."""
    found = collect({name: sample("row", 40) for name in THREE}, 0)
    paths = [path for path in found.sents if path.endswith("for north/values/function")]
    one, other = (found.sents[path] for path in paths)
    whole = Parts.of(64).layout.rows // 128 * 128 // 8
    assert len({found.seeds[path] for path in paths}) == 1
    assert np.array_equal(one.messages[:, :whole], other.messages[:, :whole])
    assert not (one.messages[:, -32:] == other.messages[:, -32:]).all(axis=1).any()
    assert not (one.streams == other.streams).all(axis=1).any()


def test_two_runs_on_the_same_rows_share_nothing():
    seen: list[set[bytes]] = []
    for seed in range(2):
        frames: list[Frame] = []
        run(world(THREE[:2], HONEST[0]), frames=frames, seed=seed)
        kinds = (".CodeColumns", ".ProgrammedRows", ".CheckedColumns")
        bodies = [f.body for f in frames if f.type.endswith(kinds)]
        bodies += [f.body for f in frames if f.type == Opening.DESCRIPTOR.full_name and "/length" not in f.lane]
        seen.append({body[start : start + 16] for body in bodies for start in range(64, len(body) - 16)})
    assert not seen[0] & seen[1]


def test_all_that_is_opened_is_stated():
    frames: list[Frame] = []
    run(world(THREE[:2], HONEST[0]), bound=9, frames=frames)
    stated = {line.label: line for line in declared("intersection", THREE, MERGER, 9, LABEL)}
    seen: Counter[tuple[str, str, str]] = Counter()
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.sender == MERGER or message.label == SIZES
            assert frame.receiver in stated[message.label].recipients
            seen[message.label, frame.sender, frame.receiver] += message.number
    assert {label for label, *_ in seen} == set(stated)
    assert all(number <= stated[label].maximum for (label, *_), number in seen.items())


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("parties", "rows", "bound"), [(3, 20, None), (4, 20, 1000), (5, 400, None)])
def test_it_sends_what_is_planned(parties, rows, bound):
    held = {name: sample("row", rows - 2 * place) for place, name in enumerate(NAMES[:parties])}
    common = len(common_to(held))
    sizes = AlignmentSizes.of({name: len(own) for name, own in held.items()}, common, bound)
    assert sizes.takes_functions
    assert intersection_work(sizes)[1] == (2 * parties - 3) * sizes.length
    traffic = Traffic(tuple(held))
    agreement_traffic(traffic)
    intersection_traffic(traffic, sizes, MERGER)
    costs = {name: costs for name, (_, costs) in run(held, bound=bound).items()}
    assert_planned(traffic, costs, rounds=range(2))


# -- parties that send wrong messages, and parties that are lost -------------------------------------------------------
def run_faulty(held: Held, rewrite: Rewrite = lambda frame: frame, crash: tuple[str, int] | None = None):
    async def role(session: Session):
        return (await intersection(session, await agree(session), held[session.me], merger=MERGER)).tolist()

    return run_faulty_parties(
        tuple(held), role, declared("intersection", tuple(held), MERGER, None, LABEL), rewrite, crash
    )


def changed(kind: str, sender: str, receiver: str, change: Any) -> Rewrite:
    def rewrite(frame: Frame) -> Frame:
        chosen = frame.type.endswith("." + kind) and (frame.sender, frame.receiver) == (sender, receiver)
        if not chosen or frame.lane.endswith(("/length", "/sizes")):
            return frame
        message = KINDS[kind].FromString(frame.body)
        if kind == "Opening" and message.label != LABEL:
            return frame
        (field,) = (name for name in ("data", "seed", "values") if hasattr(message, name))
        setattr(message, field, change(getattr(message, field)))
        copy = Frame()
        copy.CopyFrom(frame)
        copy.body = message.SerializeToString()
        return copy

    return rewrite


FEW = world(THREE[:2], HONEST[0])


@cache
def undisturbed() -> tuple[dict[str, Any], Mapping[str, int]]:
    """How it ends where nothing happens, and how many frames each party sends."""
    outcome, hub = run_faulty(FEW)
    return outcome, hub.sent


@pytest.mark.parametrize(
    ("kind", "sender", "receiver", "change"),
    crossed(
        [
            ("StoreSeed", "south", "east"),
            ("CodeColumns", "east", "south"),
            ("CodeColumns", "north", "east"),
            ("ProgrammedRows", "south", "north"),
            ("Opening", "north", "east"),
        ],
        [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b""],
    ),
)
def test_what_has_another_size_is_laid_at_its_senders_door(kind, sender, receiver, change):
    outcome, _ = run_faulty(FEW, changed(kind, sender, receiver, change))
    assert type(outcome[receiver]) is MalformedMessage
    assert outcome[receiver].party == sender
    assert all(isinstance(end, ComineError) or end for end in outcome.values())
    assert not any("common " in str(end) for end in outcome.values() if isinstance(end, MalformedMessage))


@pytest.mark.parametrize("change", [lambda data: bytes(16) + data[16:], lambda data: data[:16] + data[:16] + data[32:]])
def test_hashes_of_the_merger_are_checked(change):
    outcome, _ = run_faulty(FEW, changed("Opening", "north", "south", change))
    assert type(outcome["south"]) is ProtocolViolation


def test_after_rows_that_are_not_those_of_points_no_share_is_sent():
    before, seen = sent_before(), []

    def rewrite(frame: Frame) -> Frame:
        seen.append((frame.sender, frame.type.rpartition(".")[2]))
        return changed("CodeColumns", "east", "south", lambda _: before)(frame)

    outcome, _ = run_faulty(FEW, rewrite)
    assert type(outcome["south"]) is ProtocolViolation
    assert outcome["south"].party == "east"
    assert ("south", "ProgrammedRows") not in seen


def sent_before() -> bytes:
    """What a run from another seed sent."""
    frames: list[Frame] = []
    run(FEW, frames=frames, seed=5)
    (data,) = (
        CodeColumns.FromString(f.body).data
        for f in frames
        if f.type.endswith(".CodeColumns") and (f.sender, f.receiver) == ("east", "south")
    )
    return bytes(data)


def test_a_store_of_another_run_makes_no_row_common():
    frames: list[Frame] = []
    run(FEW, frames=frames, seed=5)
    (before,) = (
        ProgrammedRows.FromString(f.body).data
        for f in frames
        if f.type.endswith(".ProgrammedRows") and f.sender == "south"
    )
    outcome, _ = run_faulty(FEW, changed("ProgrammedRows", "south", "north", lambda _: bytes(before)))
    assert outcome == {name: [] for name in THREE}


@pytest.mark.costly
@pytest.mark.parametrize("lost", slowly(THREE, now=[0, 1]))
def test_a_party_that_is_lost_at_some_frame_ends_it_for_all(lost):
    whole, sent = undisturbed()
    for frame in spread(sent[lost], 2, 6):
        outcome, _ = run_faulty(FEW, crash=(lost, frame))
        for name, end in outcome.items():
            if name != lost and end != whole[name]:  # who needs nothing more of it may have finished
                assert type(end) is PeerError
                assert end.party == lost
