"""Naive Bayes from perturbed records: the distributions that it needs, one a class and column, are reconstructed.

Source: Aggarwal, "Data Mining: The Textbook", 2015, section 20.2.2; Agrawal and Srikant's ByClass for this classifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.reconstruction.columns import Column, check_columns, check_labels, check_table
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]


class NaiveBayes:
    """Learns from perturbed records; classifies records as they are.

    Args:
        columns: What is public of each column.
        smoothing: Added to each interval's count in each class, above 0.

    Attributes:
        classes_: The labels in their order.
        class_shares_: Shape (classes,): how frequent each is.
        densities_: For each class, the reconstructed shares of each column's intervals.

    Raises:
        ConfigurationError: There is no column, or the smoothing is not positive.
    """

    def __init__(self, columns: Sequence[Column], smoothing: float = 1.0) -> None:
        if not 0 < smoothing < np.inf:
            raise ConfigurationError("smoothing must be a positive number, or empty intervals would rule classes out")
        self.columns, self.smoothing = check_columns(columns), smoothing

    def fit(self, records: ArrayLike, labels: ArrayLike) -> Self:
        """Learns.

        Args:
            records: Perturbed as the columns say, shape (n, columns).
            labels: Shape (n,); not perturbed.

        Raises:
            InputDataError: They do not fit together, or hold values that cannot be.
        """
        table = check_table(records, self.columns)
        self.classes_, codes = check_labels(labels, len(table))
        self.class_shares_: Floats = np.bincount(codes) / len(codes)
        self.densities_: list[list[Floats]] = []
        for number in range(len(self.classes_)):
            members = table[codes == number]
            self.densities_.append([self._shares(column, members[:, at]) for at, column in enumerate(self.columns)])
        return self

    def predict_log_proba(self, records: ArrayLike) -> Floats:
        """Logarithms of the classes' probabilities, shape (n, classes), for records that are not perturbed.

        Raises:
            InputDataError: Nothing has been learned yet, or records do not fit the columns.
        """
        if not hasattr(self, "classes_"):
            raise InputDataError("the classifier has not learned yet; call fit first")
        table = check_table(records, self.columns)
        scores = np.tile(np.log(self.class_shares_), (len(table), 1))
        for at, column in enumerate(self.columns):
            codes = column.codes(table[:, at])
            for number, shares in enumerate(self.densities_):
                scores[:, number] += np.log(shares[at])[codes]
        found: Floats = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return found

    def predict(self, records: ArrayLike) -> NDArray[np.generic]:
        """The likeliest class of each record, shape (n,), for records that are not perturbed."""
        scores = self.predict_log_proba(records)
        found: NDArray[np.generic] = self.classes_[np.argmax(scores, axis=1)]
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn passes it)
        """The constructor's parameters by name, as scikit-learn asks for them."""
        return {"columns": self.columns, "smoothing": self.smoothing}

    def _shares(self, column: Column, perturbed: Floats) -> Floats:
        counts = column.density(perturbed).probabilities * len(perturbed) + self.smoothing
        shares: Floats = counts / counts.sum()
        return shares
