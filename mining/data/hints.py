"""Signs that a dataset is not what its owner means, each one sentence with what to do.

Items are named in `Hint.examples` alone, which are shown only to those who ask for them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

import numpy as np

from link.errors import InputDataError
from link.files.toml_text import quoted
from mining.data.source_format import ID_WORDS, ITEM_WORDS, Guess, guess_format
from mining.data.transactions import Transactions
from mining.limits import MAX_ITEM_BYTES

MAX_EXAMPLES: Final = 5
_NEARLY_ALL: Final = 0.95
_MOST: Final = 0.5
_FEW_ROWS: Final = 10  # below it, what most rows have in common says little
_SEPARATING: Final = re.compile(r"[,;|\t]")
_NUMBER: Final = re.compile(r"[A-Za-z]{0,3}[-_#]?\d[\d:./-]*")
_TWICE: Final = re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac|\ufffd")
_BYTE_ORDER_MARK: Final = "\ufeff"
_NO_BREAK: Final = "\u00a0\u202f"
_INVISIBLE: Final = frozenset("\ufeff\u200b\u200c\u200d\u2060\u00ad")


@dataclass(frozen=True, slots=True)
class Hint:
    """A sign of a mistake.

    Attributes:
        kind: A short name of the sign, for programs.
        sentence: What was seen, and what to do; it names no item.
        examples: Items, at most `MAX_EXAMPLES`.
    """

    kind: str
    sentence: str
    examples: tuple[str, ...] = ()


class Declared(Protocol):
    """How data are said to be written: a `[[dataset]]`, or the file of a simulation."""

    @property
    def kind(self) -> str:
        """`transactions` or `table`."""

    @property
    def source(self) -> str:
        """A file, or the URL of a database."""

    @property
    def format(self) -> str:
        """As of `mining.data.loading`."""

    @property
    def separator(self) -> str | None:
        """Between items or cells, where it is not the format's own."""

    @property
    def id_column(self) -> str:
        """Column that numbers transactions."""

    @property
    def item(self) -> str:
        """Column of the items."""


def hints(data: Transactions, dataset: Declared) -> tuple[Hint, ...]:
    """The signs that are found.

    Args:
        data: The dataset as it was read.
        dataset: How it was read.
    """
    return tuple(hint for look in _LOOKS if (hint := look(data, dataset)) is not None)


def misread(data: Transactions, dataset: Declared) -> tuple[Hint, ...]:
    """The signs that the data were not read as they are written; see `hints`, which look at each item, too."""
    return tuple(hint for look in _MISREAD if (hint := look(data, dataset)) is not None)


def long_names(items: Iterable[str]) -> Hint | None:
    """Items with names longer than any that may be sent to another party."""
    number = sum(len(item.encode()) > MAX_ITEM_BYTES for item in items)
    if not number:
        return None
    sentence = f"{number} items have names of more than {MAX_ITEM_BYTES} bytes, which no job can use"
    return Hint("long-names", f"{sentence}; shorten them in the source where they should count")


def other_format(dataset: Declared) -> str:
    """What transactions that cannot be read as declared look like instead; empty where that is not known."""
    if dataset.kind == "table" or dataset.format in ("wide", "parquet"):  # columns of these are items, not to be named
        return ""
    guess = _guess(dataset)
    advice = _settings(guess, dataset)
    return f"; it looks like {advice}, since {guess.reason}" if guess is not None and advice else ""


def _emptiness(data: Transactions, _dataset: Declared) -> Hint | None:
    if not data.n_rows:
        return Hint("empty", "there is no transaction; check the source, and the query where there is one")
    if not data.n_occurrences:
        return Hint("empty", "no transaction has an item; check the column of items, or that cells are 0 and 1")
    return None


def _long_names(data: Transactions, _dataset: Declared) -> Hint | None:
    return long_names(data.items)


def _header(data: Transactions, dataset: Declared) -> Hint | None:
    """A first line whose words occur nowhere else, and name columns or stand above numbers."""
    if not _is_list(dataset) or data.n_rows < 2:
        return None
    first = set(data.indices[: data.offsets[1]].tolist())
    counts = data.item_counts()
    if not first or any(counts[index] > 1 for index in first):
        return None
    words = [data.items[index] for index in sorted(first)]
    names_columns = any(pattern.fullmatch(word.strip()) for word in words for pattern in (ID_WORDS, ITEM_WORDS))
    numbers = (_NUMBER.fullmatch(item) for index, item in enumerate(data.items) if index not in first)
    if not names_columns and (any(map(_NUMBER.fullmatch, words)) or not all(numbers)):
        return None
    guess = _guess(dataset)
    table = f", or write {_settings(guess, dataset)}" if guess is not None and guess.format in ("long", "wide") else ""
    sentence = f"the first line looks like names of columns but is read as a transaction; remove it{table}"
    return Hint("header", sentence, some(words))


def _separator(data: Transactions, dataset: Declared) -> Hint | None:
    """Items that hold what separates items elsewhere: lines were not taken apart, or not fully."""
    if not _is_list(dataset) or not data.n_items:
        return None
    own = dataset.separator or ("," if dataset.format == "csv" else "")
    holding = [item for item in data.items if any(sign not in own for sign in _SEPARATING.findall(item))]
    if len(holding) >= _MOST * data.n_items:
        advice = _settings(_guess(dataset), dataset) or "it as separator"
        sentence = f"most items hold a comma, semicolon, bar or tab; if that separates items, write {advice}"
        return Hint("separator", sentence, some(holding))
    spaced = [item for item in data.items if " " in item.strip()]
    if own and data.lengths.max() == 1 and len(spaced) >= _MOST * data.n_items:
        sentence = 'no line holds the separator, and most hold blanks; if those separate items, write format = "basket"'
        return Hint("separator", f"{sentence} without separator", some(spaced))
    return None


def _ids(data: Transactions, dataset: Declared) -> Hint | None:
    """A number that nearly every row has for itself among its items; or, in the long form, an id for each line."""
    if data.n_rows < _FEW_ROWS or not data.n_occurrences:
        return None
    if dataset.format in ("long", "sql"):
        if data.lengths.max() > 1:
            return None
        sentence = "no transaction has more than one item; check that the column"
        return Hint("ids", f"{sentence} {quoted(dataset.id_column)} numbers transactions and not lines")
    if np.median(data.lengths) <= 1:
        return None
    is_number = (_NUMBER.fullmatch(item) is not None for item in data.items)
    own = np.fromiter(is_number, bool, data.n_items) & (data.item_counts() == 1)
    if np.count_nonzero(np.bincount(data.row_numbers()[own[data.indices]]) == 1) < _NEARLY_ALL * data.n_rows:
        return None
    return Hint(
        "ids",
        "nearly every transaction has a number of its own among its items, as from a column of ids; remove that column "
        "from the source",
        some(data.items[index] for index in np.flatnonzero(own)),
    )


def _alike(data: Transactions, _dataset: Declared) -> Hint | None:
    """Items that a person would read as the same."""
    several = read_alike(data.items)
    if not several:
        return None
    sentence = f"{len(several)} items differ from another one only by case, blanks or invisible characters"
    return Hint("alike", f"{sentence}, and count apart; write them alike", some(several))


def read_alike(texts: Iterable[str]) -> list[str]:
    """Those of distinct texts that differ from another one only by case, blanks or invisible characters."""
    families: dict[str, list[str]] = {}
    for text in texts:
        families.setdefault(_as_read(text), []).append(text)
    return [text for family in families.values() if len(family) > 1 for text in family]


def _as_read(item: str) -> str:
    visible = "".join(" " if sign in _NO_BREAK else sign for sign in item if sign not in _INVISIBLE)
    return " ".join(unicodedata.normalize("NFC", visible).casefold().split())


def _edges(data: Transactions, dataset: Declared) -> Hint | None:
    """Items with blanks around them."""
    edged = [item for item in data.items if item != item.strip()]
    if not edged:
        return None
    spaced = np.fromiter((item[:1] == " " for item in data.items), bool, data.n_items)
    later = data.n_occurrences - int(np.count_nonzero(data.lengths))  # all but the first of each row
    other = ""
    if _is_list(dataset) and np.count_nonzero(spaced[data.indices]) >= _NEARLY_ALL * later > 0:
        separator = (dataset.separator or ",") + " "
        other = f", or write format = {quoted('basket')}, separator = {quoted(separator)}"
    sentence = f"blanks, tabs or line ends around items count as part of them, in {len(edged)} of {data.n_items} items"
    return Hint("blanks", f"{sentence}; remove them from the source{other}", some(edged))


def _invisible(data: Transactions, _dataset: Declared) -> Hint | None:
    """Items with characters that nobody sees and that make them other items all the same."""
    marked = [item for item in data.items if _BYTE_ORDER_MARK in item]
    if marked:
        sentence = f"a byte order mark is part of {len(marked)} of {data.n_items} items, as where files were put one"
        return Hint("byte-order-mark", f"{sentence} behind the other; remove it from the source", some(marked))
    hidden = [item for item in data.items if has_hidden(item)]
    if not hidden:
        return None
    sentence = f"{len(hidden)} of {data.n_items} items hold tabs, no-break blanks or other characters that nobody sees"
    return Hint("invisible", f"{sentence}; write them without, or set separator to what separates items", some(hidden))


def _encoding(data: Transactions, _dataset: Declared) -> Hint | None:
    """Text in UTF-8 that was read, here or before, as if it were in an encoding of one byte a character."""
    wrong = [item for item in data.items if _TWICE.search(item)]
    if not wrong:
        return None
    sentence = f"{len(wrong)} items look like UTF-8 text that was read in another encoding"
    return Hint("encoding", f"{sentence}; leave out encoding, or save the source anew", some(wrong))


def has_hidden(text: str) -> bool:
    """Whether a text holds, between its first and last visible character, one that nobody sees."""
    return any(map(_is_hidden, text.strip()))


def _is_hidden(sign: str) -> bool:
    return sign in _INVISIBLE or sign in _NO_BREAK or unicodedata.category(sign) == "Cc"


def _is_list(dataset: Declared) -> bool:
    """Whether a line of the source lists items, without names of columns."""
    return dataset.format in ("basket", "csv")


def some(items: Iterable[str]) -> tuple[str, ...]:
    """The first few items, as examples."""
    return tuple(islice(items, MAX_EXAMPLES))


def _guess(dataset: Declared) -> Guess | None:
    try:
        return guess_format(dataset.source)
    except InputDataError:
        return None


def _settings(guess: Guess | None, dataset: Declared) -> str:
    """The lines of `[[dataset]]` by which a guess differs from it."""
    if guess is None:
        return ""
    given = {"format": dataset.format, "separator": dataset.separator}
    if guess.format in ("long", "wide"):
        given |= {"id": dataset.id_column, "item": dataset.item}
    wanted = {key: value for key, value in guess.settings.items() if value != given.get(key)}
    return ", ".join(f"{key} = {quoted(value)}" for key, value in wanted.items())


_Look = Callable[[Transactions, Declared], Hint | None]
_MISREAD: Final[tuple[_Look, ...]] = (_emptiness, _header, _separator, _ids, _encoding)
_LOOKS: Final[tuple[_Look, ...]] = (*_MISREAD, _alike, _edges, _invisible, _long_names)
