"""Privacy models: what a class of records must have so that it may be released."""

from anonymize.models.alpha_k import AlphaK
from anonymize.models.beta_likeness import BetaLikeness
from anonymize.models.delta_disclosure import DeltaDisclosure
from anonymize.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from anonymize.models.k_anonymity import KAnonymity
from anonymize.models.model import Model
from anonymize.models.p_sensitive import PSensitive
from anonymize.models.requirements import Requirements
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.models.t_closeness import TCloseness

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "KAnonymity",
    "Model",
    "PSensitive",
    "RecursiveDiversity",
    "Requirements",
    "SensitiveLevels",
    "TCloseness",
]
