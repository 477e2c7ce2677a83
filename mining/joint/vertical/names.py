"""Lists of names that every party opens to all: of its columns, and of its frequent items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError, MalformedMessage
from link.session import Session
from link.tasks import together
from mining.limits import MAX_ITEM_BYTES

PREFIX_BYTES: Final = 4  # bytes of a name's length
_MOST: Final = 1 << 24  # names of a party

Check = Callable[[int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """The frequent items of all parties, or of all groups of parties that hold the same columns.

    Attributes:
        items: In ascending order of UTF-8 bytes.
        holder: By item, the number of the party or group that holds it.
        places: By party or group, the positions in `items` of those that it named, in the order in which it did.
        own: By item, its number among those that this party or its group named; −1 where another one holds it.
    """

    items: tuple[str, ...]
    holder: NDArray[np.int64]
    places: dict[str, NDArray[np.int64]]
    own: NDArray[np.int64]

    def numbers(self, members: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in the dictionary, or −1, as numbers of items that this party named."""
        return np.append(self.own, -1)[members]


async def name_items(session: Session, label: str, items: Sequence[str]) -> Dictionary:
    """Every party names its frequent items to all.

    Args:
        session: A lane of its own.
        label: Of the job's statement.
        items: This party's.

    Raises:
        InputDataError: A name is too long.
        MalformedMessage: A peer's names are none, or another party's too.
    """
    return dictionary_of(session.parties, session.me, await open_names(session, label, items))


def dictionary_of(holders: Sequence[str], me: str, by_holder: Mapping[str, Sequence[str]]) -> Dictionary:
    """The dictionary of what all parties, or groups of them, have named.

    Args:
        holders: The parties or groups, in their order.
        me: This one, or that of this party.
        by_holder: Their frequent items, each one's in the order in which it has named them.

    Raises:
        MalformedMessage: Two of them name the same item.
    """
    found = sorted(item for names in by_holder.values() for item in names)
    position = {item: place for place, item in enumerate(found)}
    if len(position) != len(found):
        raise MalformedMessage("two parties name the same item; check the versions of all nodes")
    places = {name: np.array([position[item] for item in by_holder[name]], np.int64) for name in holders}
    holder, own = np.zeros(len(found), np.int64), np.full(len(found), -1, np.int64)
    for number, name in enumerate(holders):
        holder[places[name]] = number
    own[places[me]] = np.arange(len(by_holder[me]))
    return Dictionary(tuple(found), holder, places, own)


async def open_names(
    session: Session, label: str, names: Sequence[str], check: Check = lambda number: None
) -> dict[str, list[str]]:
    """Every party opens a list of distinct names to all.

    Args:
        session: A lane of its own.
        label: Of the job's statement, for one value more than there are names.
        names: This party's.
        check: As of `receive_names`.

    Returns:
        By party, in the order of the job.

    Raises:
        InputDataError: A name is too long.
        MalformedMessage: A peer's names are none.
    """
    await open_names_to(session, label, names, session.others)
    theirs = await together(receive_names(session, label, peer, check) for peer in session.others)
    found = {**dict(zip(session.others, theirs, strict=True)), session.me: list(names)}
    return {party: found[party] for party in session.parties}


async def open_names_to(session: Session, label: str, names: Sequence[str], to: Sequence[str]) -> None:
    """Opens a list of distinct names to some parties; errors as of `open_names`."""
    rows = _packed(session.me, names)
    await session.open(label, np.array([rows.shape], np.uint32), to)
    if len(rows):
        await session.open(label, rows, to)


async def receive_names(session: Session, label: str, peer: str, check: Check = lambda number: None) -> list[str]:
    """The list that a peer opens; errors as of `open_names`.

    Args:
        session: As of `open_names`.
        label: Likewise.
        peer: Who opens it.
        check: Raises where a peer announces more names than the caller takes, before any of them is read.
    """
    shape = await session.receive_opened(peer, label, np.uint32, (1, 2))
    number, width = (int(each) for each in shape[0])
    if not number:
        return []
    if number > _MOST or not PREFIX_BYTES <= width <= PREFIX_BYTES + MAX_ITEM_BYTES:
        raise _malformed(peer, label)
    check(number)
    names: list[str] = []
    try:
        # What is announced may be more than any memory: rows are taken as they come.
        async for rows in session.receive_opened_pieces(peer, label, number, width):
            names += [_unpacked(row.tobytes()) for row in rows]
    except ValueError:
        raise _malformed(peer, label) from None
    if len(set(names)) != number:
        raise _malformed(peer, label)
    return names


def _packed(me: str, names: Sequence[str]) -> NDArray[np.uint8]:
    """A row for each name: its length, its text, zeros."""
    texts = [name.encode() for name in names]
    if any(len(text) > MAX_ITEM_BYTES for text in texts):
        raise InputDataError(
            f"the dataset of {me} has a column with a name of more than {MAX_ITEM_BYTES} bytes; shorten it"
        )
    width = PREFIX_BYTES + max(map(len, texts), default=0)
    rows = b"".join((len(text).to_bytes(PREFIX_BYTES, "big") + text).ljust(width, b"\0") for text in texts)
    return np.frombuffer(rows, np.uint8).reshape(len(texts), width)


def _unpacked(row: bytes) -> str:
    size, rest = int.from_bytes(row[:PREFIX_BYTES], "big"), row[PREFIX_BYTES:]
    if size > len(rest) or rest[size:].strip(b"\0"):
        raise ValueError("a name is longer than its row, or something follows it")
    return rest[:size].decode()


def _malformed(peer: str, label: str) -> MalformedMessage:
    return MalformedMessage(f"{peer} opens {label} that are none; check that node", party=peer)
