"""Lies about the rows that tasks return: a number, a checksum, a name, a row too few or many."""

import random
from collections.abc import Callable, Iterator
from typing import get_type_hints

from cleaner_jobs.messages import Part, Rewritten, Verdict
from tests.lies.lie import Known, Lie, Place, Row, one_of

Rows = list[Row]
Change = Callable[[Rows, random.Random], Rows | None]
# a row's log is the one that is lied about; the others of these say nothing of what was cleaned
LEFT_OUT = {"log_id", "codecs", "facts_checksum"}
NUMBERS = {
    place: [
        name for name, kind in get_type_hints(row).items() if kind is int and name not in LEFT_OUT
    ]
    for place, row in (
        (Place.SCANNED, Part),
        (Place.RESOLVED, Verdict),
        (Place.REWRITTEN, Rewritten),
    )
}
SECTION = ("segment", "start", "end", "first_ordinal", "first_offset", "last_offset")
FILES = ("log_file", "index_file", "time_index_file", "txn_index_file")


def row_lies() -> Iterator[Lie]:
    for place, names in NUMBERS.items():
        for name in names:
            for by in (1, -1):
                yield Lie(f"{name} {by:+}", place, _told(_number(name, by)))
        yield Lie("a row is lost", place, _told(_lost))
        yield Lie("a row comes twice", place, _told(_twice))
    for at, name in enumerate(SECTION):
        for by in (1, -1):
            yield Lie(f"{name} of a section {by:+}", Place.SCANNED, _told(_section(at, by)))
    yield Lie("a section is lost", Place.SCANNED, _told(_section_lost))
    yield Lie("a segment is left in place", Place.REWRITTEN, _told(_left_in_place))
    yield Lie("files of another group", Place.REWRITTEN, _told(_other_files))
    yield Lie("a file is not named", Place.REWRITTEN, _told(_unnamed))
    yield Lie("index files exchanged", Place.REWRITTEN, _told(_indexes_exchanged))
    yield Lie("checksum of an index", Place.REWRITTEN, _told(_index_checksum))


def _told(change: Change) -> Callable[[Rows, random.Random, Known], Rows | None]:
    return lambda rows, chance, _: change(rows, chance)


def _number(name: str, by: int) -> Change:
    def changed(rows: Rows, chance: random.Random) -> Rows | None:
        able = [row for row in rows if row[name] + by >= 0]
        one_of(able, chance)[name] += by
        return rows

    return changed


def _lost(rows: Rows, chance: random.Random) -> Rows | None:
    rows.remove(chance.choice(rows))
    return rows


def _twice(rows: Rows, chance: random.Random) -> Rows | None:
    return [*rows, chance.choice(rows)]


def _section(at: int, by: int) -> Change:
    def changed(rows: Rows, chance: random.Random) -> Rows | None:
        row = chance.choice(rows)
        sections = [list(section) for section in row["sections"]]
        section = chance.choice(sections)
        section[at] += by
        row["sections"] = sections
        return rows if section[at] >= 0 else None

    return changed


def _section_lost(rows: Rows, chance: random.Random) -> Rows | None:
    row = chance.choice(rows)
    sections = list(row["sections"])
    sections.remove(chance.choice(sections))
    row["sections"] = sections
    return rows


def _left_in_place(rows: Rows, chance: random.Random) -> Rows | None:
    able = [row for row in rows if not row["left_in_place"]]
    one_of(able, chance)["left_in_place"] = True
    return rows


def _other_files(rows: Rows, chance: random.Random) -> Rows | None:
    able = [row for row in rows if row["log_file"]]
    if len(able) < 2:
        return None
    one, other = chance.sample(able, 2)
    for name in FILES:
        one[name], other[name] = other[name], one[name]
    return rows


def _unnamed(rows: Rows, chance: random.Random) -> Rows | None:
    able = [(row, name) for row in rows for name in FILES if row[name]]
    row, name = one_of(able, chance)
    row[name] = ""
    return rows


def _indexes_exchanged(rows: Rows, chance: random.Random) -> Rows | None:
    able = [row for row in rows if row["index_file"]]
    row = one_of(able, chance)
    row["index_file"], row["time_index_file"] = row["time_index_file"], row["index_file"]
    return rows


def _index_checksum(rows: Rows, chance: random.Random) -> Rows | None:
    able = [row for row in rows if row["index_checksums"]]
    row = one_of(able, chance)
    checksums = list(row["index_checksums"])
    checksums[chance.randrange(len(checksums))] ^= 1
    row["index_checksums"] = checksums
    return rows
