"""Models: naive Bayes, decision trees and k-means, over rows or columns."""
