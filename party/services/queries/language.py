"""The language of queries: `avg(salary) where age >= 30 and city in ('Bern', 'Basel')`.

    query       function ( column ) [where condition]         function: sum avg max min count; count takes * too
    condition   and-list or and-list …
    and-list    part and part …
    part        not part | ( condition ) | column operator value | column [not] between value and value
                | column [not] in ( value , … )
    operator    = != <> < <= > >=
    column      a word, or any text in "double quotes"
    value       a number, or a text in 'single quotes'; a quote within is doubled

Words of the language may be written in capitals. Nothing else is understood: no calculation, no function in a
condition, no other table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, NamedTuple, get_args

from anonymize.auditing.column import QueryClass
from link.errors import UsageError

Function = Literal["sum", "avg", "max", "min", "count"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Value = str | Decimal

CLASS_OF: Final[dict[Function, QueryClass]] = {"sum": "sum", "avg": "sum", "max": "max", "min": "min", "count": "count"}
"""To which class of queries a function belongs: averages over known sets are sums."""

LONGEST: Final = 4096  # characters of a query
DEEPEST: Final = 50  # conditions within one another
_WORDS: Final = frozenset({"where", "and", "or", "not", "in", "between"})
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,2})?(?![\w.]))"""
    r"""|(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")+")|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<sign><=|>=|!=|<>|[=<>(),*]))"""
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cell is equal to, below or above a value; of a text by its characters, of a number by its size."""

    column: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """A cell is one of several values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that is not met."""

    part: Condition


@dataclass(frozen=True, slots=True)
class All:
    """Conditions that are all met."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Conditions of which one is met."""

    parts: tuple[Condition, ...]


Condition = Comparison | OneOf | Not | All | Any


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked.

    Attributes:
        function: What is computed.
        column: Of which column; `*`: of none, but of records.
        condition: Of which records; None: of all.
    """

    function: Function
    column: str
    condition: Condition | None

    @property
    def named(self) -> tuple[str, ...]:
        """The columns in the condition, each once, in their order."""
        return tuple(dict.fromkeys(_named(self.condition)))


def _named(condition: Condition | None) -> Iterator[str]:
    match condition:
        case Comparison(column=column) | OneOf(column=column):
            yield column
        case Not(part=part):
            yield from _named(part)
        case All(parts=parts) | Any(parts=parts):
            for each in parts:
                yield from _named(each)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """In small letters, where it is a word."""
        return self.text.lower() if self.kind == "word" else ""


def parse(text: str) -> Query:
    """Reads a query.

    Raises:
        UsageError: It is none; the sentence says where it ends to be one.
    """
    if len(text) > LONGEST:
        raise UsageError(f"a query has at most {LONGEST:,} characters, and this one {len(text):,}")
    return _Parser(list(_tokens(text))).query()


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            raise UsageError(f"the query cannot be read at character {begin + 1}; see: comine query --help")
        kind = found.lastgroup or ""
        yield _Token(kind, found.group(kind), found.start(kind))
        at = found.end()
    yield _Token("end", "", len(text))


class _Parser:
    """Recursive descent over tokens; the last one is the end."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def query(self) -> Query:
        token = self._next()
        function = next((each for each in get_args(Function) if each == token.word), None)
        if function is None:
            raise self._wrong(token, f"one of {', '.join(get_args(Function))}")
        self._sign("(")
        if function == "count" and self._is_sign("*"):
            self._at += 1
            column = "*"
        else:
            column = self._column()
        self._sign(")")
        condition = None
        if self._peek.word == "where":
            self._at += 1
            condition = self._any()
        if self._peek.kind != "end":
            raise self._wrong(self._peek, "the end" if condition is not None else "where, or the end")
        return Query(function, column, condition)

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._peek.word == "or":
            self._at += 1
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def _all(self) -> Condition:
        parts = [self._part()]
        while self._peek.word == "and":
            self._at += 1
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _part(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UsageError(f"a query has at most {DEEPEST} conditions within one another")
        try:
            if self._peek.word == "not":
                self._at += 1
                return Not(self._part())
            if self._is_sign("("):
                self._at += 1
                inner = self._any()
                self._sign(")")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Condition:
        column = self._column()
        token = self._next()
        if token.word == "not":
            negated, token = True, self._next()
        else:
            negated = False
        found: Condition
        if token.word == "between":
            low = self._value()
            if (between := self._next()).word != "and":
                raise self._wrong(between, "and")
            found = All((Comparison(column, ">=", low), Comparison(column, "<=", self._value())))
        elif token.word == "in":
            self._sign("(")
            values = [self._value()]
            while self._is_sign(","):
                self._at += 1
                values.append(self._value())
            self._sign(")")
            found = OneOf(column, tuple(values))
        elif token.kind == "sign" and not negated:
            sign = "!=" if token.text == "<>" else token.text
            operator = next((each for each in get_args(Operator) if each == sign), None)
            if operator is None:
                raise self._wrong(token, "a comparison")
            return Comparison(column, operator, self._value())
        else:
            raise self._wrong(token, "in or between" if negated else "a comparison")
        return Not(found) if negated else found

    def _column(self) -> str:
        token = self._next()
        if token.kind == "name":
            return token.text[1:-1].replace('""', '"')
        if token.kind != "word" or token.word in _WORDS:
            raise self._wrong(token, "a column")
        return token.text

    def _value(self) -> Value:
        token = self._next()
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind != "number":
            raise self._wrong(token, "a number, or a text in single quotes")
        return Decimal(token.text)

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._peek
        if token.kind != "end":
            self._at += 1
        return token

    def _is_sign(self, sign: str) -> bool:
        return self._peek.kind == "sign" and self._peek.text == sign

    def _sign(self, sign: str) -> None:
        token = self._next()
        if token.kind != "sign" or token.text != sign:
            raise self._wrong(token, sign)

    def _wrong(self, token: _Token, wanted: str) -> UsageError:
        where = "where it ends" if token.kind == "end" else f"at character {token.at + 1}"
        return UsageError(f"the query lacks {wanted} {where}; see: comine query --help")
