"""Pages of protocols say what is secure, by which simulator, with which errors (the code's), and what an end tells."""

from __future__ import annotations

import re
from functools import cache

import pytest

from crypto.params import STANDARD_128
from crypto.primitives import linear_code, okvs
from crypto.primitives.groups import point_hash
from crypto.primitives.paillier import primes, slots
from crypto.primitives.paillier.zeros import SHORT_BITS
from crypto.primitives.randomness import KEY_BYTES
from crypto.primitives.sealed import OVERHEAD
from crypto.primitives.shares.masks import SECRET_BYTES
from crypto.primitives.shares.ring_matrix import LIMB_BITS, MAX_ROWS
from crypto.protocols.alignment.matches import STATISTICAL_BITS
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.alignment.zero_shares import WORD_BYTES
from crypto.protocols.comparison.argmin import MAX_CANDIDATES
from crypto.protocols.comparison.shared_lookup import MAX_BITS
from crypto.protocols.products.chunk_counts import CHUNK_ROWS
from crypto.protocols.products.outside_dealer import LABEL_BYTES, MAX_PRODUCTS
from crypto.protocols.sums import masked_maximum
from crypto.protocols.transfers import base_ot, oblivious_transfer, seed_trees
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.table_transfers import INDEX_BITS
from crypto.protocols.union import prefixes
from crypto.protocols.union.size_classes import LISTS
from ldp.shuffling.route import ID_BYTES
from tests.repository.test_docs import PROTOCOL_PAGES, PROTOCOLS

PARTS = {
    "what a trusted party would do": r"^\*\*Ideal functionality",
    "a simulator": r"^\*\*Simulator",
    "parameters with their errors": r"^\*\*Parameters",
    "what an end tells": r"^\*\*(Abort|What an end reveals|Parameters, ends)",
}
COMPOSED = {"what is called": r"^\*\*Composition", "what an end tells": r"^\*\*Abort"}
"""Parts of pages about tasks, which call protocols that have pages of their own."""

PAGES = {*PROTOCOL_PAGES.values()} | {"shuffle"}
TASKS = {
    *("blended", "distributed-noise", "frequency-service", "hybrid", "joint-anonymisation", "shared-rules"),
    *("joint-anonymisation-vertical", "joint-itemsets", "joint-models", "joint-vertical"),
}
NO_PROTOCOLS = {"alignment-parameters", "try"}

_BITS = 8
NUMBERS = {
    "secure-sum": [f"Keys of {SECRET_BYTES} bytes"],
    "masked-maximum": [
        f"have {_BITS * masked_maximum.WORD_BYTES} bits",
        f"below 2^-{_BITS * masked_maximum.WORD_BYTES - 1}",
        f"takes {LISTS.beyond} places",
        f"limits {sum(prefixes.LIMITS)}",
    ],
    "base-ot": [f"near 2^{STANDARD_128.group_order.bit_length() - 1}", f"Keys are {base_ot.KEY_BYTES} bytes"],
    "oblivious-transfer": [
        f"keys of {base_ot.KEY_BYTES} bytes",
        f"up to {oblivious_transfer.MAX_MESSAGE_BYTES >> 20} MiB",
    ],
    "ot-extension": [
        f"have {_BITS * base_ot.KEY_BYTES} bits",
        f"k = {DEFAULT_FIELD_BITS}, one of {1 << SYMBOL_BITS}",
        f"Hashes have {seed_trees.HASH_BYTES} bytes",
    ],
    "oprf": [
        f"{linear_code.WORD_BITS} bits a word, any two {linear_code.DISTANCE} apart",
        f"{okvs.DENSE} dense rows",
        f"Points have {_BITS * point_hash.POINT_BYTES} bits",
    ],
    "ot-matrix": [f"at most {CHUNK_ROWS} rows", f"below 2^{CHUNK_ROWS.bit_length()}"],
    "comparison": [f"one of {1 << INDEX_BITS}", f"one of {1 << SYMBOL_BITS}"],
    "argmin": [f"At most {MAX_CANDIDATES:,} numbers"],
    "dealer": [f"below 2^{MAX_ROWS.bit_length()}", f"have {LABEL_BYTES} bytes"],
    "replicated": [
        f"numbers of rows below 2^{MAX_ROWS.bit_length()}",
        f"products of {LIMB_BITS} bits",
        f"Seeds have {KEY_BYTES} bytes",
    ],
    "shared-rows": [f"at most 2^{MAX_BITS} bits"],
    "prefix-union": [f"Points have {prefixes.MOST_BITS} bits", f"of {sum(prefixes.LIMITS)} places"],
    "paillier": [
        f"{slots.STATISTICAL_BITS} bits longer",
        f"2^-{slots.STATISTICAL_BITS} a mask",
        "Keys of {}, {} and {} bits: {}, {} and {} bits".format(*SHORT_BITS, *(b // 4 for b in SHORT_BITS.values())),
        f"{primes.PRIME_ROUNDS} rounds",
    ],
    "alignment": [f"one of 2^{STATISTICAL_BITS} runs", f"words of {_BITS * WORD_BYTES}"],
    "shuffle": [f"{OVERHEAD} bytes a layer", f"identities have {ID_BYTES} bytes"],
}
"""Phrases of the parameters of a page, with the numbers that the code has."""


@cache
def text_of(page: str) -> str:
    return (PROTOCOLS / f"{page}.md").read_text(encoding="utf-8")


def missing(page: str, parts: dict[str, str]) -> list[str]:
    return [what for what, part in parts.items() if not re.search(part, text_of(page), re.MULTILINE)]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_protocol_says_what_is_secure_and_why(page: str) -> None:
    assert missing(page, PARTS) == []


@pytest.mark.parametrize("page", sorted(TASKS))
def test_a_task_says_of_what_it_is_composed(page: str) -> None:
    assert missing(page, COMPOSED) == []


def test_every_page_is_one_of_these() -> None:
    assert {page.stem for page in PROTOCOLS.glob("*.md")} == PAGES | TASKS | NO_PROTOCOLS


@pytest.mark.parametrize("page", sorted(NUMBERS))
def test_parameters_are_those_of_the_code(page: str) -> None:
    (said,) = re.findall(r"^\*\*Parameters\.\*\*.*?(?=\n\n|\Z)", text_of(page), re.MULTILINE | re.DOTALL)
    said = " ".join(said.split())
    assert [phrase for phrase in NUMBERS[page] if phrase not in said] == []


def test_values_of_two_lists_are_as_long_as_said() -> None:
    sizes = [value_bytes(length) for length in (1024, 100_000, 1 << 24)]
    assert "{} for 1,024 places, {} for 10^5, {} for 2^24".format(*sizes) in text_of("alignment")


def test_a_dealer_gives_as_many_products_as_said() -> None:
    assert f"more than 2^{MAX_PRODUCTS.bit_length() - 1} products" in text_of("dealer")
