"""Query auditing: the worked examples, adversaries that solve for values, and denials that tell nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.auditing.column import ColumnAuditor
from anonymize.auditing.counts import BooleanAuditor, OverlapControl, SizeControl
from anonymize.auditing.extremes import MaxAuditor
from anonymize.auditing.intervals import Pinned, pinned
from anonymize.auditing.sums import SumAuditor
from crypto.primitives.randomness import Randomness
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

Query = tuple[int, ...]
PRIME = 10**40 + 121


def sums(n: int, seed: int = 1) -> SumAuditor:
    return SumAuditor(n, Randomness.from_seed(seed))


def ask(auditor: SumAuditor, queries: Sequence[Query]) -> list[bool]:
    found = []
    for query in queries:
        found.append(auditor.decide(query).allowed)
        if found[-1]:
            auditor.answer(query)
    return found


def reduced(queries: Sequence[Query], n: int) -> list[list[int]]:
    """The reduced row echelon form: the adversary's own arithmetic, modulo a prime that no query was made against."""
    rows = [[int(i in query) for i in range(n)] for query in queries]
    done: list[list[int]] = []
    for column in range(n):
        at = next((row for row in rows if row[column]), None)
        if at is None:
            continue
        rows.remove(at)
        inverse = pow(at[column], -1, PRIME)
        at = [cell * inverse % PRIME for cell in at]
        rows, done = ([_less(row, at, column) for row in part] for part in (rows, done))
        done.append(at)
    return done


def _less(row: list[int], by: list[int], column: int) -> list[int]:
    factor = row[column]
    return [(a - factor * b) % PRIME for a, b in zip(row, by, strict=True)] if factor else row


def determined(queries: Sequence[Query], n: int) -> bool:
    return any(sum(cell != 0 for cell in row) == 1 for row in reduced(queries, n))


@pytest.mark.parametrize(
    ("queries", "allowed"),
    [
        ([(0, 1, 2), (0, 1)], [True, False]),
        ([(0, 1, 2), (1, 2, 3)], [True, True]),
        ([(0, 1), (1, 2), (0, 2)], [True, True, False]),
        ([(0, 1), (1, 2), (2, 3)], [True, True, True]),
        ([(0, 1), (0, 1), (2,)], [True, True, False]),
    ],
)
def test_sums_as_worked_out(queries: list[Query], allowed: list[bool]) -> None:
    assert ask(sums(4), queries) == allowed


QUERIES = st.lists(st.sets(st.integers(0, 7), min_size=1).map(lambda s: tuple(sorted(s))), max_size=14)


@settings(max_examples=75, deadline=None)
@given(QUERIES, st.integers(0, 2**32))
def test_sums_are_denied_exactly_where_a_value_would_be_determined(queries: list[Query], seed: int) -> None:
    auditor, answered = sums(8, seed), []
    for query in queries:
        wanted = not determined([*answered, query], 8)
        assert auditor.decide(query).allowed == wanted
        if wanted:
            auditor.answer(query)
            answered.append(query)
    assert auditor.rank == len(reduced(answered, 8))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_sums_of_many_records(seed: int) -> None:
    """Large sets are kept by what they leave out, and pivots go beyond the first size of the inverse."""
    rng, n = np.random.default_rng(seed), 90
    auditor, answered = sums(n, seed), []
    for _ in range(40):
        query = tuple(np.flatnonzero(rng.random(n) < rng.choice([0.1, 0.5, 0.9])).tolist()) or (0,)
        if auditor.decide(query).allowed:
            auditor.answer(query)
            answered.append(query)
    assert auditor.rank > 20
    assert not determined(answered, n)


def fixed_prime_attack(steps: int) -> tuple[list[Query], int]:
    """Queries that determine every value over the rationals, and none modulo 2^(steps + 1) − 1."""
    v = list(range(steps + 1))
    u = [steps + 1 + 2 * j for j in range(steps)]
    queries: list[Query] = []
    for j in range(steps):
        queries += [(v[j], u[j]), (v[j], u[j] + 1), (v[j + 1], u[j], u[j] + 1)]
    return [*queries, tuple(v)], 3 * steps + 1


def test_one_known_prime_can_be_outwitted_and_secret_ones_cannot() -> None:
    queries, n = fixed_prime_attack(30)
    assert len(queries) == n
    known = SumAuditor(n, Randomness.from_seed(1), primes=[(1 << 31) - 1] * 2)
    assert all(ask(known, queries))
    assert determined(queries, n)
    assert not all(ask(sums(n), queries))
    longer, n = fixed_prime_attack(60)
    assert (len(longer), n) == (181, 181)
    answered = [query for query, allowed in zip(longer, ask(sums(n), longer), strict=True) if allowed]
    assert not determined(answered, n)


def test_changed_values_are_variables_of_their_own() -> None:
    auditor = sums(3)
    auditor.answer((0, 1, 2))
    assert auditor.extend(1).tolist() == [3]
    assert auditor.decide((0, 1, 3)).allowed
    auditor.answer((0, 1, 3))
    assert not auditor.decide((2,)).allowed
    assert not auditor.decide((3,)).allowed
    assert not auditor.decide((2, 3)).allowed  # their difference is known
    assert not auditor.decide((0, 3)).allowed  # as x1 would follow
    assert auditor.decide((0, 2, 3)).allowed


def ask_maxima(queries: Sequence[tuple[Query, float]], n: int = 8) -> list[bool]:
    auditor, found = MaxAuditor(n), []
    for query, answer in queries:
        found.append(auditor.decide(query).allowed)
        if found[-1]:
            auditor.answer(query, answer)
    return found


def test_maxima_as_worked_out() -> None:
    # An answer below 9 would tell x2 = 9, so the second is denied whatever its answer is.
    assert ask_maxima([((0, 1, 2), 9), ((0, 1), 7)]) == [True, False]
    assert ask_maxima([((0, 1, 2), 9), ((0, 1), 9)]) == [True, False]
    assert ask_maxima([((0,), 3)]) == [False]
    assert ask_maxima([((0, 1), 3), ((2, 3), 5), ((0, 1, 2, 3), 5)]) == [True, True, True]
    told = MaxAuditor(4)
    for query, answer in (((0, 1, 2, 3), 9), ((0, 1), 8), ((2,), 5)):
        told.answer(query, answer)
    assert told.determined().tolist() == [2, 3]


VALUES = st.lists(st.integers(0, 4), min_size=6, max_size=6)
SETS = st.lists(st.sets(st.integers(0, 5), min_size=1).map(lambda s: tuple(sorted(s))), max_size=10)


@settings(max_examples=75, deadline=None)
@given(VALUES, VALUES, SETS)
def test_maxima_tell_no_value_and_denials_nothing(first: list[int], second: list[int], queries: list[Query]) -> None:
    runs = []
    for values in (first, second):
        auditor, told = MaxAuditor(6), []
        for query in queries:
            allowed = auditor.decide(query).allowed
            told.append((allowed, max(values[i] for i in query) if allowed else None))
            if allowed:
                auditor.answer(query, told[-1][1] or 0)
                assert not len(auditor.determined())
        runs.append(told)
        answered = [(q, a) for q, (allowed, a) in zip(queries, told, strict=True) if allowed and a is not None]
        # The adversary: every database over a finer grid that gives these answers; no record has one value in all.
        grid = [g / 2 for g in range(-1, 10)]
        bound = {i: min((a for q, a in answered if i in q), default=None) for i in range(6)}
        for i in range(6):
            if bound[i] is None:
                continue
            extreme = [[j for j in q if bound[j] == a] for q, a in answered if bound[i] == a and i in q]
            assert all(len(each) > 1 for each in extreme)
            assert min(grid) < (bound[i] or 0)
    same = next((k for k, (a, b) in enumerate(zip(*runs, strict=True)) if a != b), len(queries))
    if same < len(queries):  # until answers differ, decisions are the same
        assert runs[0][same][0] == runs[1][same][0]


OF = (0, 1, 2, 0, 1, 0, 1)  # records 3 and 5 are what the person of 0 has later, 4 and 6 that of 1
GRID = np.stack(np.meshgrid(*[range(-4, 2)] * len(OF), indexing="ij"), axis=-1).reshape(-1, len(OF))
CHANGED = GRID
for one, other in ((0, 3), (0, 5), (3, 5), (1, 4), (1, 6), (4, 6)):
    CHANGED = CHANGED[CHANGED[:, one] != CHANGED[:, other]]
HELD = CHANGED[(CHANGED >= -1).all(axis=1)]  # below each value there are others that it might have been
HELD = HELD[(HELD == 1).sum(axis=1) >= 3]
AT_ONE_TIME = st.sampled_from([(0, 1), (3, 4), (5, 6), (0, 1, 2), (3, 4, 2), (5, 6, 2), (3, 1), (3, 1, 2), (1, 2)])


def test_a_changed_value_is_known_to_be_another_one() -> None:
    auditor = MaxAuditor(4)
    auditor.answer((0, 1, 2, 3), 9)
    auditor.extend(2, (0, 1, 2, 3, 0, 3))
    assert auditor.decide((4, 1, 2, 5)).allowed
    assert not auditor.decide((4, 1, 5)).allowed  # as 9 would leave 2 alone of the first query
    again = MaxAuditor(len(OF), OF)
    for query in ((0, 1), (3, 4)):
        again.answer(query, 9)
    assert not again.decide((5, 6, 2)).allowed  # 0 or 3 is 9, and 1 or 4; so 5 and 6 are not, and 2 would be
    assert MaxAuditor(len(OF)).decide((5, 6, 2)).allowed


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(range(len(HELD))), min_size=2, max_size=2), st.lists(AT_ONE_TIME, max_size=8))
def test_maxima_of_changed_values_tell_none(chosen: list[int], queries: list[Query]) -> None:
    """The adversary knows who has changed, and tries every database; no denial depends on which one it is."""
    runs = []
    for values in HELD[chosen]:
        auditor, left, told = MaxAuditor(len(OF), OF), CHANGED, []
        for query in map(list, queries):
            allowed = auditor.decide(query).allowed
            told.append((allowed, values[query].max() if allowed else None))
            if allowed:
                auditor.answer(query, values[query].max())
                left = left[left[:, query].max(axis=1) == values[query].max()]
                assert (left != left[0]).any(axis=0).all()
        runs.append(told)
    for (allowed, answer), (other, another) in zip(*runs, strict=True):
        assert allowed == other
        if answer != another:
            break


def boolean_solutions(answered: Sequence[tuple[Query, int]], n: int) -> list[tuple[int, ...]]:
    return [x for x in product((0, 1), repeat=n) if all(sum(x[i] for i in q) == a for q, a in answered)]


def test_counts_tell_more_than_sums() -> None:
    queries: list[tuple[Query, int]] = [((0, 1, 2), 1), ((1, 3), 1), ((0, 3), 1)]
    assert not determined([query for query, _ in queries], 4)
    assert len(boolean_solutions(queries, 4)) == 1
    auditor = BooleanAuditor(4)
    assert not auditor.decide((0, 1, 2)).allowed  # an answer of 0 or 3 would tell all three


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 1), min_size=6, max_size=6),
    st.lists(st.sets(st.integers(0, 5), min_size=2).map(lambda s: tuple(sorted(s))), max_size=4),
    st.lists(st.tuples(st.sets(st.integers(0, 5), min_size=2).map(lambda s: tuple(sorted(s)))), max_size=1),
)
def test_counts_are_denied_exactly_where_some_answer_would_tell(
    values: list[int], before: list[Query], then: list[tuple[Query]]
) -> None:
    auditor = BooleanAuditor(6)
    answered = [(query, sum(values[i] for i in query)) for query in before[:1]]
    for query, count in answered:
        auditor.answer(query, count)
    for (query,) in then:
        tells = False
        for answer in range(len(query) + 1):
            linked = [(q, a) for q, a in answered if set(q) & set(query)]
            left = boolean_solutions([*linked, (query, answer)], 6)
            touched = set(query).union(*(q for q, _ in linked))
            tells |= bool(left) and any(len({x[i] for x in left}) == 1 for i in touched)
        assert auditor.decide(query).allowed != tells


@pytest.mark.parametrize(
    ("least", "known", "overlap", "needed", "most"),
    [(2, 0, 1, 3, 2), (5, 0, 1, 9, 8), (5, 1, 1, 8, 7), (10, 0, 3, 19 / 3, 6)],
)
def test_overlap_control(least: int, known: int, overlap: int, needed: float, most: int) -> None:
    control = OverlapControl(1000, least, overlap, known)
    assert control.needed == pytest.approx(needed)
    assert control.most == most
    sets = [tuple(range(i * least, (i + 1) * least)) for i in range(most + 1)]
    for each in sets[:-1]:
        assert control.decide(each).allowed
        control.answer(each)
    assert control.decide(sets[-1]).reason == "too many"
    assert control.decide(sets[0]).allowed


def test_values_of_one_person_count_as_shared() -> None:
    control = OverlapControl(4, 3, 1)
    control.answer((0, 1, 2))
    control.extend(3, (0, 1, 2, 3, 0, 1, 4))
    assert control.decide((4, 5, 6)).reason == "overlap"
    assert control.decide((3, 4, 6)).allowed
    assert control.decide((0, 1, 2)).allowed


def test_controls_refuse_small_sets_and_overlap() -> None:
    control = OverlapControl(100, 4, 1)
    control.answer((0, 1, 2, 3))
    assert control.decide((2, 3, 4, 5)).reason == "overlap"
    assert control.decide((4, 5, 6)).reason == "size"
    size = SizeControl(20, 3)
    assert [size.decide(each).allowed for each in (0, 2, 3, 17, 18, 20)] == [False, False, True, True, False, False]
    with fails("E100"):
        OverlapControl(100, 2, 3)


def test_intervals_are_found_in_a_log() -> None:
    found = pinned([(0, 1), (2, 3)], [1.0, 100.0], 4, (0.0, 100.0), 5.0)
    assert found == [Pinned(0, 0.0, 1.0), Pinned(1, 0.0, 1.0)]
    with fails("E101"):
        pinned([(0, 1)], [300.0], 2, (0.0, 100.0), 5.0)


def test_a_column_answers_one_class() -> None:
    auditor = ColumnAuditor(4, random=Randomness.from_seed(1))
    assert auditor.decide("sum", (0, 1)).allowed
    auditor.answer("sum", (0, 1), 18)
    assert auditor.chosen == "sum"
    assert auditor.decide("max", (0, 1)).reason == "class"
    assert auditor.decide("sum", (0,)).reason == "disclosure"
    assert ColumnAuditor(4, ("max",)).decide("count", (0, 1)).reason == "class"
    minima = ColumnAuditor(4)
    minima.answer("min", (0, 1, 2), 2)
    assert minima.decide("min", (0, 1)).reason == "disclosure"
    with fails("E101"):
        auditor.decide("sum", ())
    with fails("E101"):
        auditor.decide("sum", (4,))


# -- what is kept of an auditor ---------------------------------------------------------------------------------------
def kept(auditor: SumAuditor) -> bytes:
    file = io.BytesIO()
    auditor.write(file)
    return file.getvalue()


@settings(max_examples=60, deadline=None)
@given(QUERIES, QUERIES, st.integers(0, 3), st.integers(0, 2**32))
def test_a_kept_auditor_decides_as_it_would_have(before: list[Query], after: list[Query], more: int, seed: int) -> None:
    first = sums(8, seed)
    ask(first, before)
    first.extend(more)
    second = SumAuditor.read(io.BytesIO(kept(first)), Randomness.from_seed(seed + 1))
    assert (second.n, second.rank) == (8 + more, first.rank)
    assert ask(first, after) == ask(second, after)


def test_a_kept_auditor_of_many_records() -> None:
    """Its inverse has grown, and it knows sets by what they leave out."""
    rng, n = np.random.default_rng(3), 120
    queries = [tuple(np.flatnonzero(rng.random(n) < share).tolist()) for share in [0.1, 0.5, 0.9] * 30]
    first = sums(n)
    ask(first, queries[:70])
    second = SumAuditor.read(io.BytesIO(kept(first)))
    assert second.rank > 64
    assert ask(first, queries[70:]) == ask(second, queries[70:])


def test_damaged_states_are_refused() -> None:
    auditor = sums(8)
    ask(auditor, [(0, 1, 2), (2, 3, 4, 5), (1, 2, 3, 4, 5, 6, 7)])
    whole = kept(auditor)
    for end in range(0, len(whole), 7):
        with fails("E101"):
            SumAuditor.read(io.BytesIO(whole[:end]))
    for at in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        with fails("E101"):
            SumAuditor.read(io.BytesIO(changed))
    with fails("E101"):
        SumAuditor.read(io.BytesIO(whole + b"x"))


def test_a_column_goes_on_with_kept_sums_and_new_records() -> None:
    column = ColumnAuditor(6, random=Randomness.from_seed(1), control=OverlapControl(6, 2, 1))
    assert column.sums is None
    column.answer("sum", (0, 1), 5)
    assert column.sums is not None
    again = ColumnAuditor(6, control=OverlapControl(6, 2, 1))
    again.resume(SumAuditor.read(io.BytesIO(kept(column.sums))), [(0, 1)])
    for each in (column, again):
        assert each.chosen == "sum"
        assert each.decide("max", (0, 1)).reason == "class"
        assert each.decide("sum", (0, 1, 2)).reason == "overlap"
        each.extend(2)
        assert each.decide("sum", (6, 7)).allowed
        with fails("E101"):
            each.decide("sum", (8, 9))
