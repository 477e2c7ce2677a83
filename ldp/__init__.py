"""Local differential privacy: every value is perturbed where it lives, and only aggregates become accurate.

A mechanism has two halves. `privatise` runs beside the data and turns values into reports; an `Aggregator` adds reports
up and estimates. Reports and an aggregator's state can be written as bytes, and states of disjoint reports be merged.

    from ldp import Aggregator, oracle

    oue = oracle("oue", ["bread", "milk", "tea"], epsilon=1.0)
    reports = oue.privatise(["milk", "tea", "milk"])
    Aggregator(oue).add(reports).estimate().frequencies

A name is loaded when it is first used. What means something only beside its module, such as the functions in
`ldp.accounting`, stays there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from link.public_names import lazily

if TYPE_CHECKING:
    from crypto.primitives.randomness import Randomness
    from ldp.aggregator import Aggregator
    from ldp.attacks.poisoning import MaximalGain
    from ldp.blending.blender import Blender
    from ldp.choice import choose
    from ldp.consistency import consistent
    from ldp.context.idue import InputDiscriminativeUnaryEncoding
    from ldp.context.idue_sets import InputDiscriminativeSets
    from ldp.context.lip import information_private
    from ldp.context.prior_response import OptimalResponse
    from ldp.domain import Domain
    from ldp.estimate import Estimate
    from ldp.expectation import fit_reports, iterative_bayes
    from ldp.frequency_oracle import FrequencyOracle, PureOracle
    from ldp.heavy_hitters.bit_strings import Integers, Texts
    from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
    from ldp.heavy_hitters.prefix_extending import PrefixExtending, PrefixServer
    from ldp.learning.descent import Descent
    from ldp.learning.linear_models import LogisticRegression
    from ldp.longitudinal.memoised import Memo
    from ldp.mechanism import Mechanism
    from ldp.numeric.hybrid import Hybrid
    from ldp.numeric.records import MixedRecords
    from ldp.numeric.square_wave import SquareWave
    from ldp.oracles.direct_encoding import DirectEncoding
    from ldp.oracles.unary_encoding import OptimisedUnaryEncoding, SymmetricUnaryEncoding
    from ldp.rappor.client import RapporClient
    from ldp.rappor.mechanism import Rappor
    from ldp.registry import oracle, oracle_names
    from ldp.reports import Field, Reports
    from ldp.sets.mask import Mask
    from ldp.sets.padding import PaddingAndSampling
    from ldp.sets.plan import MiningServer
    from ldp.sets.privset import PrivSet
    from ldp.sets.rules import estimated_rules
    from ldp.sets.select_a_size import SelectASize
    from ldp.sets.svsm import ItemsetMining
    from ldp.streams.ledger import WindowLedger
    from ldp.streams.methods import stream_method

__all__ = [
    "Aggregator",
    "Blender",
    "Descent",
    "DirectEncoding",
    "Domain",
    "Estimate",
    "Field",
    "FrequencyOracle",
    "Hybrid",
    "InputDiscriminativeSets",
    "InputDiscriminativeUnaryEncoding",
    "Integers",
    "ItemsetMining",
    "LogisticRegression",
    "Mask",
    "MaximalGain",
    "Mechanism",
    "Memo",
    "MiningServer",
    "MixedRecords",
    "OptimalResponse",
    "OptimisedUnaryEncoding",
    "PaddingAndSampling",
    "PrefixExtending",
    "PrefixServer",
    "PrivSet",
    "PureOracle",
    "Randomness",
    "Rappor",
    "RapporClient",
    "Reports",
    "SelectASize",
    "SequenceFragmentPuzzle",
    "SquareWave",
    "SymmetricUnaryEncoding",
    "Texts",
    "WindowLedger",
    "choose",
    "consistent",
    "estimated_rules",
    "fit_reports",
    "information_private",
    "iterative_bayes",
    "oracle",
    "oracle_names",
    "stream_method",
]

_HOMES: Final = {
    "crypto.primitives.randomness": ("Randomness",),
    "ldp.aggregator": ("Aggregator",),
    "ldp.attacks.poisoning": ("MaximalGain",),
    "ldp.blending.blender": ("Blender",),
    "ldp.choice": ("choose",),
    "ldp.consistency": ("consistent",),
    "ldp.context.idue": ("InputDiscriminativeUnaryEncoding",),
    "ldp.context.idue_sets": ("InputDiscriminativeSets",),
    "ldp.context.lip": ("information_private",),
    "ldp.context.prior_response": ("OptimalResponse",),
    "ldp.domain": ("Domain",),
    "ldp.estimate": ("Estimate",),
    "ldp.expectation": ("fit_reports", "iterative_bayes"),
    "ldp.frequency_oracle": ("FrequencyOracle", "PureOracle"),
    "ldp.heavy_hitters.bit_strings": ("Integers", "Texts"),
    "ldp.heavy_hitters.fragment_puzzle": ("SequenceFragmentPuzzle",),
    "ldp.heavy_hitters.prefix_extending": ("PrefixExtending", "PrefixServer"),
    "ldp.learning.descent": ("Descent",),
    "ldp.learning.linear_models": ("LogisticRegression",),
    "ldp.longitudinal.memoised": ("Memo",),
    "ldp.mechanism": ("Mechanism",),
    "ldp.numeric.hybrid": ("Hybrid",),
    "ldp.numeric.records": ("MixedRecords",),
    "ldp.numeric.square_wave": ("SquareWave",),
    "ldp.oracles.direct_encoding": ("DirectEncoding",),
    "ldp.oracles.unary_encoding": ("OptimisedUnaryEncoding", "SymmetricUnaryEncoding"),
    "ldp.rappor.client": ("RapporClient",),
    "ldp.rappor.mechanism": ("Rappor",),
    "ldp.registry": ("oracle", "oracle_names"),
    "ldp.reports": ("Field", "Reports"),
    "ldp.sets.mask": ("Mask",),
    "ldp.sets.padding": ("PaddingAndSampling",),
    "ldp.sets.plan": ("MiningServer",),
    "ldp.sets.privset": ("PrivSet",),
    "ldp.sets.rules": ("estimated_rules",),
    "ldp.sets.select_a_size": ("SelectASize",),
    "ldp.sets.svsm": ("ItemsetMining",),
    "ldp.streams.ledger": ("WindowLedger",),
    "ldp.streams.methods": ("stream_method",),
}

if not TYPE_CHECKING:  # there, a name that is not public is an error
    __getattr__, __dir__ = lazily(__name__, _HOMES)
