"""Counters of a log, as its inspection tells them. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from cleaner_jobs import inspection_counters as of
from cleaner_jobs.inspection_counters import CountedKeys, Int64Array
from compactor.inspection.inspection import BatchKind, Keys, SizeClass, TombstoneKind, Tombstones
from storage.codecs.compression import Codec

_SECTIONS = {of.CLEAN: "clean", of.DIRTY: "dirty", of.UNCLEANABLE: "uncleanable"}
_HORIZONS = {
    of.NO_HORIZON: "none",
    of.HORIZON_AHEAD: "ahead",
    of.HORIZON_PASSED: "passed",
    of.LEGACY_FORMAT: "legacy",
}


class Cleaning(NamedTuple):
    """What the tombstones of a log go by."""

    is_compacted: bool
    delete_retention_ms: int
    as_of_ms: int


def batch_kinds(counters: Int64Array) -> tuple[BatchKind, ...]:
    found = []
    for magic in range(of.FORMATS):
        for codec in range(of.CODECS):
            at = of.BATCHES_AT + (magic * of.CODECS + codec) * of.BATCH_CELL
            batches, size, records = counters[at : at + of.BATCH_CELL].tolist()
            if batches:
                found.append(
                    BatchKind(f"v{magic}", Codec(codec).name.lower(), batches, size, records)
                )
    return tuple(found)


def size_classes(counters: Int64Array, at: int, classes: int) -> tuple[SizeClass, ...]:
    """Those of them that have a member. at: where their counts begin."""
    return tuple(
        SizeClass(1 << bits - 1 if bits else 0, (1 << bits) - 1, count)
        for bits, count in enumerate(counters[at : at + classes].tolist())
        if count
    )


def least_of(counters: Int64Array, at: int) -> int | None:
    return None if counters[at] == of.MAX_INT64 else int(counters[at])


def greatest_of(counters: Int64Array, at: int) -> int | None:
    return None if counters[at] < 0 else int(counters[at])


def keys_of(sums: Int64Array) -> Keys:
    return Keys(
        keys=int(sums[of.KEYS]),
        live_keys=int(sums[of.LIVE_KEYS]),
        records=int(sums[of.KEYED_RECORDS]),
        bytes=int(sums[of.KEYED_BYTES]),
        live_bytes=int(sums[of.LIVE_BYTES]),
        versions=size_classes(sums, of.VERSION_CLASSES_AT, of.VERSION_CLASSES),
    )


def heaviest(found: Sequence[CountedKeys], by: int, most: int) -> list[tuple[int, int, int]]:
    """The keys with most versions or bytes, by HEAVY_COLUMNS. by: VERSIONS or BYTES."""
    rows = [row for of_part in found for row in (of_part.most_versions, of_part.most_bytes)[by]]
    return sorted(rows, key=lambda row: (-row[by], row[of.OFFSET]))[:most]


def tombstones_of(counters: Int64Array, keys: Keys | None, cleaning: Cleaning) -> Tombstones:
    """keys: of the whole log; None: of a sample."""
    kinds = []
    for section, section_name in _SECTIONS.items():
        for horizon, horizon_name in _HORIZONS.items():
            cell = (section * of.HORIZONS + horizon) * of.TOMBSTONE_CELL + of.TOMBSTONES_AT
            records, size = counters[cell : cell + of.TOMBSTONE_CELL].tolist()
            if records:
                kinds.append(TombstoneKind(section_name, horizon_name, records, size))
    return Tombstones(
        records=sum(kind.records for kind in kinds),
        bytes=sum(kind.bytes for kind in kinds),
        latest_of_their_keys=None if keys is None else keys.keys - keys.live_keys,
        oldest_ms=least_of(counters, of.LEAST_TOMBSTONE_TIMESTAMP),
        newest_ms=greatest_of(counters, of.GREATEST_TOMBSTONE_TIMESTAMP),
        earliest_removal_ms=_earliest_removal_ms(kinds, counters, cleaning),
        why=tuple(_why(kinds, cleaning)),
        kinds=tuple(kinds),
    )


def _earliest_removal_ms(
    kinds: Sequence[TombstoneKind], counters: Int64Array, cleaning: Cleaning
) -> int | None:
    """As far as horizons go, which stay as given: a cleaning has to come by then, too.

    (C-11.3, C-11.7)
    """
    if not kinds or not cleaning.is_compacted:
        return None
    horizons = {kind.horizon for kind in kinds if kind.section != _SECTIONS[of.UNCLEANABLE]}
    if horizons & {_HORIZONS[of.HORIZON_PASSED], _HORIZONS[of.LEGACY_FORMAT]}:
        return cleaning.as_of_ms
    given_next_ms = cleaning.as_of_ms + cleaning.delete_retention_ms
    if _HORIZONS[of.HORIZON_AHEAD] not in horizons:
        return given_next_ms
    # which may be that of a tombstone behind the bound, and past
    least_ms = max(int(counters[of.LEAST_HORIZON]), cleaning.as_of_ms)
    others_wait = _HORIZONS[of.NO_HORIZON] in horizons or any(
        kind.section == _SECTIONS[of.UNCLEANABLE] for kind in kinds
    )
    return min(least_ms, given_next_ms) if others_wait else least_ms


def _why(kinds: Sequence[TombstoneKind], cleaning: Cleaning) -> list[str]:
    if not cleaning.is_compacted:
        return ["the topic is not compacted: a tombstone there is a record like any other"]
    total: dict[str, int] = {}
    for kind in kinds:
        is_behind = kind.section == _SECTIONS[of.UNCLEANABLE]
        name = kind.section if is_behind else kind.horizon
        total[name] = total.get(name, 0) + kind.records
    return [_REASONS[name].format(count=f"{total[name]:,}") for name in _REASONS if name in total]


_REASONS = {
    "passed": "{count} past the delete horizon: they go with the next cleaning",
    "ahead": "{count} with a delete horizon that is still ahead",
    "none": "{count} without a delete horizon yet: the next cleaning gives one, "
    "delete.retention.ms later",
    "legacy": "{count} of format v0 or v1, which go by the age of their segment",
    "uncleanable": "{count} where nothing is cleaned yet: in the active segment, or behind the "
    "bound that explain shows",
}
