"""Models: naive Bayes, decision trees and k-means, over columns."""

from jobs.kinds.key import keys

KEYS = keys(("naive-bayes", "decision-tree", "k-means"), ("vertical",), ("exact",))
