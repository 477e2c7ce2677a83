"""Which values a report speaks for: what attackers craft, what defenders count, and what auditors tell inputs apart by.

A report supports a value if it is likelier from a user who has it than from one who has not.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from ldp.context.idue import InputDiscriminativeUnaryEncoding
from ldp.context.prior_response import PriorResponse
from ldp.domain import Codes
from ldp.hadamard import parity
from ldp.oracle import FrequencyOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.histogram_encoding import SummationHistogramEncoding
from ldp.oracles.local_hashing import LocalHashing
from ldp.oracles.sketches import CountMeanSketch, FastLocalHashing, HadamardCountMeanSketch, Sketch
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import UnaryEncoding
from ldp.packed import Rows
from ldp.reports import Reports
from ldp.sampling import Bits
from link.errors import ConfigurationError


@singledispatch
def supports(oracle: FrequencyOracle, reports: Reports, values: Codes) -> Bits:  # noqa: ARG001 (families read them)
    """Whether each report supports each of some values.

    Args:
        oracle: Whose reports these are.
        reports: n reports.
        values: Shape (k,): numbers of values.

    Returns:
        Shape (n, k).

    Raises:
        ConfigurationError: The oracle's reports support no values.
    """
    raise ConfigurationError(f"it is not known which values a report of {oracle.name} supports; take another oracle")


@supports.register(DirectEncoding)
@supports.register(PriorResponse)
def _direct(oracle: DirectEncoding | PriorResponse, reports: Reports, values: Codes) -> Bits:  # noqa: ARG001
    found: Bits = np.equal(reports.fields[0][:, None], values)
    return found


@supports.register
def _unary(oracle: UnaryEncoding, reports: Reports, values: Codes) -> Bits:  # noqa: ARG001
    return bits_at(reports.fields[0], values)


@supports.register
def _subset(oracle: SubsetSelection, reports: Reports, values: Codes) -> Bits:
    sets = reports.fields[0]
    if oracle._listed:
        return np.stack([(sets == value).any(axis=1) for value in values], axis=1)
    return bits_at(sets, values)


@supports.register
def _hashed(oracle: LocalHashing, reports: Reports, values: Codes) -> Bits:
    seeds, buckets = reports.fields
    found: Bits = np.equal(oracle._family.buckets(seeds[:, None, :], values), buckets[:, None])
    return found


@supports.register
def _histogram(oracle: SummationHistogramEncoding, reports: Reports, values: Codes) -> Bits:  # noqa: ARG001
    found: Bits = np.greater(reports.fields[0][:, values], 0)
    return found


@supports.register
def _hadamard(oracle: HadamardResponse, reports: Reports, values: Codes) -> Bits:
    return oracle._half_block(values, reports.fields[0].astype(np.int64)[:, None])


@supports.register
def _fast(oracle: FastLocalHashing, reports: Reports, values: Codes) -> Bits:
    found: Bits = np.equal(_buckets(oracle, reports, values), reports.fields[1][:, None])
    return found


@supports.register
def _count_mean(oracle: CountMeanSketch, reports: Reports, values: Codes) -> Bits:
    return bits_at(reports.fields[1], _buckets(oracle, reports, values))


@supports.register
def _hadamard_count_mean(oracle: HadamardCountMeanSketch, reports: Reports, values: Codes) -> Bits:
    coefficients, negative = np.divmod(reports.fields[1].astype(np.int64)[:, None], 2)
    found: Bits = np.equal(parity(coefficients & _buckets(oracle, reports, values)), negative.astype(np.bool_))
    return found


@supports.register
def _discriminative(oracle: InputDiscriminativeUnaryEncoding, reports: Reports, values: Codes) -> Bits:
    found = np.empty((len(reports), len(values)), dtype=np.bool_)
    for level, rows in enumerate(reports.fields):
        here = oracle.level_of[values] == level
        found[:, here] = bits_at(rows, oracle.place_of[values[here]])
    return found


def _buckets(oracle: Sketch, reports: Reports, values: Codes) -> Codes:
    """The bucket of each value under the function of each report, shape (n, k)."""
    return oracle._family.buckets(oracle._seeds[reports.fields[0]][:, None, :], values)


def bits_at(rows: Rows, columns: Codes) -> Bits:
    """Some bits of each row.

    Args:
        rows: n rows of bits.
        columns: Which bits: shape (k,) for the same ones of all rows, or (n, k).

    Returns:
        Shape (n, k).
    """
    places = np.broadcast_to(columns, (len(rows), columns.shape[-1]))
    bytes_of = np.take_along_axis(rows, places >> 3, axis=1)
    return (bytes_of >> (places & 7).astype(np.uint8) & 1).astype(np.bool_)
