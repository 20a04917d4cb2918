"""Edits of JSON such as a hand, a merge or a damaged disk makes."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
_OTHERS: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 2**70, -(2**63) - 1, float("nan"), "", "x", "../d"),
    *("\0", "\ud800", [], {}, [None], [[]], {"a": None}, [1, "x"], "9" * 5000, "0x1", "١"),
)


def edited(data: bytes, chance: random.Random) -> bytes:
    """One, two or three edits, of the values most often, and of the bytes at times."""
    if chance.random() < 0.2:
        return _edited_bytes(data, chance)
    lines = data.decode().splitlines() if _is_of_lines(data) else [data.decode()]
    at = chance.randrange(len(lines))
    document = json.loads(lines[at])
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _edit(document, chance)
    lines[at] = json.dumps(document)
    return "\n".join(lines).encode()


def _is_of_lines(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return True
    return False


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for name, each in inner:
        yield (*at, name)
        yield from _places(each, (*at, name))


def _edit(document: Any, chance: random.Random) -> None:
    places = [*_places(document)]
    if not places:
        return
    *above, name = chance.choice(places)
    last: Any = name
    holder: Any = document
    for each in above:
        holder = holder[each]
    how = chance.random()
    if how < 0.15:
        del holder[last]
    elif how < 0.25 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[last]))
    elif how < 0.4 and type(holder[last]) is int:
        holder[last] += chance.choice((-1, 1, 2**40, -(2**40)))
    elif how < 0.5 and isinstance(holder[last], (str, list)):
        holder[last] = holder[last] * 2
    else:
        holder[last] = copy.deepcopy(chance.choice(_OTHERS))


def _edited_bytes(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    at = chance.randrange(len(out))
    how = chance.randrange(4)
    if how == 0:
        return bytes(out[:at])
    if how == 1:
        out[at] = chance.randrange(256)
    elif how == 2:
        del out[at : at + chance.randrange(1, 9)]
    else:
        out[at:at] = out[at : at + chance.randrange(1, 40)]
    return bytes(out)
