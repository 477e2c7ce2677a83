"""What a cluster's failures are called: what was too large, and which of its settings to raise."""

from __future__ import annotations

from typing import Final

_UNREADABLE: Final = ("TABLE_OR_VIEW_NOT_FOUND", "PARSE_SYNTAX_ERROR", "UNRESOLVED_COLUMN.WITH_SUGGESTION")
_TOO_LARGE: Final = {
    "spark.driver.maxResultSize": "what its workers return together exceeds spark.driver.maxResultSize; raise it "
    "there, or ask for less, such as fewer candidates or columns",
    "RESOURCE_EXHAUSTED": "what its workers need to know exceeds a message of Spark Connect; raise "
    "spark.connect.grpc.maxInboundMessageSize there, or ask for less, such as fewer candidates or items",
    "ExecutorLostFailure": "its executors were lost again and again over the same work, most often for lack of memory; "
    "raise spark.executor.memory there, or ask for less",
}


def is_unreadable(condition: str) -> bool:
    """Whether an error of this condition says that a query cannot be read."""
    return condition in _UNREADABLE


def too_large(words: str) -> str:
    """What was too large, by Spark's own words, of which nothing else is told; empty where nothing was."""
    return next((sentence for sign, sentence in _TOO_LARGE.items() if sign in words), "")
