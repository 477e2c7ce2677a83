"""A node's file with other rules in it: comments, order and all else stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import tomlkit
from tomlkit.container import Container, OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, InlineTable, Item, Key, Null, Table, Whitespace
from tomlkit.items import Comment as CommentItem

from jobs.spec.toml import parse_toml
from link.errors import ConfigurationError
from party.console.scattered_tables import gathered, pieces, scattered

Place = tuple[str | int, ...]
"""A table of the file: its keys and numbers from the outermost one."""

Body = list[tuple[Key | None, Item]]

_TRIVIA: Final = (Whitespace, CommentItem)


def rewritten(data: bytes, path: str, changes: Mapping[Place, Mapping[str, Any]]) -> bytes:
    """The file with other values.

    Args:
        data: The file.
        path: Where it is from, for sentences.
        changes: By table what its keys are now; None takes a key out.

    Raises:
        ConfigurationError: The file is written in a way in which this cannot be done without touching something else.
    """
    text, expected = data.decode("utf-8-sig"), parse_toml(data, path)
    before = pieces(text if text.endswith("\n") else f"{text}\n")
    text = "".join(before[number].text for number in gathered(before))
    try:
        if tomlkit.dumps(tomlkit.parse(text)) != text:
            raise _unusual(path)
        for place, values in changes.items():
            for key, value in values.items():
                document = tomlkit.parse(text)
                _write(document, place, key, value)
                text = tomlkit.dumps(document)
                _set(expected, place, key, value)
        text = scattered(before, pieces(text))
    except (TOMLKitError, AttributeError, LookupError, TypeError, ValueError):
        raise _unusual(path) from None
    found = (b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b"") + text.encode()
    if parse_toml(found, path) != expected:
        raise _unusual(path)
    return found


def _unusual(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is written in a way in which the console cannot change it without touching other lines, such as "
        "[policy] behind [policy.columns]; put an outer table before its parts, or change the file by hand and run "
        "comine party reload"
    )


def _set(contents: Any, place: Place, key: str, value: Any) -> None:
    """The same change of what the file says."""
    *outer, last = place
    for each in outer:
        contents = contents[each]
    if value is None:
        contents[last].pop(key)
    elif isinstance(last, str):
        contents.setdefault(last, {})[key] = value


def _write(document: Any, place: Place, key: str, value: Any) -> None:
    *outer, last = place
    holder = document
    for each in outer:
        holder = holder[each]
    if last not in holder:
        _add_table(holder, str(last), key, value)
        return
    table = holder[last]
    if isinstance(table, OutOfOrderTableProxy):
        raise ValueError
    if isinstance(table, InlineTable):
        if value is None:
            del table[key]
        else:
            table[key] = _plain(value)
        return
    if isinstance(table.get(key), Table | AoT):
        ends, number = _take_out(table, key)
        if _is_tables(value):
            table.value.body.insert(number, (tomlkit.key(key), _tables(value, ends)))
            return
        table.value.body[number:number] = ends
    elif value is None:
        del table[key]
        return
    elif key in table:
        table[key] = _plain(value)
        return
    if value is not None:
        _add(table, key, value)


def _add(table: Table, key: str, value: Any) -> None:
    """Writes a key that is not there: behind the last plain one, or as tables behind everything."""
    body = table.value.body
    if _is_tables(value):
        tables = _tables(value, _take_end(table.value))
        body += [(None, Whitespace("\n")), (tomlkit.key(key), tables)]
        return
    plain = [number for number, (name, item) in enumerate(body) if name is not None and not _is_table(item)]
    body.insert(plain[-1] + 1 if plain else 0, (tomlkit.key(key), _plain(value)))


def _add_table(holder: Any, name: str, key: str, value: Any) -> None:
    """Writes a table that is not there behind all that stands in the one that it goes into."""
    if isinstance(holder, InlineTable):
        holder[name] = _inline({key: value})
        return
    ends = _take_end(holder.value)
    table = tomlkit.table()
    _add(table, key, value)
    _end(table.value).extend(ends or [(None, Whitespace("\n"))])
    holder.append(name, table)


def _take_out(table: Table, key: str) -> tuple[Body, int]:
    """Removes tables: the comments behind them, which are about what comes next, and where they were."""
    body = table.value.body
    number = next(number for number, (name, _) in enumerate(body) if name is not None and name.key == key)
    tables = body.pop(number)[1]
    return _take_end(tables[-1].value if isinstance(tables, AoT) else tables.value), number


def _end(container: Container) -> Body:
    """The body of the innermost table with which a table ends."""
    for _, item in reversed(container.body):
        if isinstance(item, Table):
            return _end(item.value)
        if isinstance(item, AoT):
            return _end(item[-1].value)
        if not isinstance(item, Null):
            break
    return container.body


def _take_end(container: Container) -> Body:
    """Takes out the blank lines and comments at the end of a table; they belong to what comes next."""
    body = _end(container)
    number = len(body)
    while number and isinstance(body[number - 1][1], _TRIVIA):
        number -= 1
    if number and number < len(body) and isinstance(body[number][1], CommentItem):
        while number < len(body) and isinstance(body[number][1], CommentItem):
            number += 1  # but comments right below a key are about it
    ends = body[number:]
    del body[number:]
    return ends


def _is_table(item: Item) -> bool:
    return isinstance(item, Table | AoT) and not (isinstance(item, Table) and item.is_super_table())


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _plain(value: Any) -> Item:
    if isinstance(value, Decimal):
        return tomlkit.value(_number(value))
    if isinstance(value, Mapping):
        return _inline(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        found = tomlkit.array()
        for each in value:
            found.append(_plain(each))
        return found
    found_item: Item = tomlkit.item(value)
    return found_item


def _number(value: Decimal) -> str:
    text = str(value).lower()
    return text if set(text) & set(".e") else f"{text}.0"


def _inline(values: Mapping[str, Any]) -> InlineTable:
    found = tomlkit.inline_table()
    for key, value in values.items():
        found[key] = _plain(value)
    return found


def _tables(values: Sequence[Mapping[str, Any]], ends: Body) -> AoT:
    found = tomlkit.aot()
    for each in values:
        table = tomlkit.table()
        for key, value in each.items():
            table[key] = _plain(value)
        found.append(table)
    found[-1].value.body.extend(ends)
    return found
