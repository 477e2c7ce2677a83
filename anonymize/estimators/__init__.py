"""Anonymisers as scikit-learn has its transformers: parameters in the constructor, learned values end in `_`.

Each takes a table of pyarrow, pandas or polars (or a dictionary of lists) and gives the release as the same. `fit`
makes it, `fit_transform` gives it. Parameters are kept as they are given and checked by `fit`, so that
scikit-learn can clone estimators.
"""

from anonymize.estimators.base import Anonymizer
from anonymize.estimators.perturbing import Condensation, IdentityReplacement, Mdav, SensitiveClustering
from anonymize.estimators.recoding import FullDomain, Mondrian

__all__ = [
    "Anonymizer",
    "Condensation",
    "FullDomain",
    "IdentityReplacement",
    "Mdav",
    "Mondrian",
    "SensitiveClustering",
]
