"""Models: naive Bayes, decision trees and k-means, over rows."""

from jobs.kinds.key import keys

KEYS = keys(("naive-bayes", "decision-tree", "k-means"), ("horizontal",), ("exact",))
