"""What was counted of one log, put together with what its files say beside that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cleaner_jobs import inspection_counters as of
from cleaner_jobs.inspection_counters import (
    ABORTED_RECORDS,
    BATCH_SIZES_AT,
    BY_TOPIC,
    BYTES,
    CONTROL_RECORDS,
    EMPTY_BATCHES,
    GREATEST_BATCH,
    GREATEST_RECORD,
    GREATEST_TIMESTAMP,
    KEY_SUMS,
    LEAST_TIMESTAMP,
    NULL_KEYS,
    RECORD_BYTES,
    RECORD_SIZES_AT,
    RECORDS,
    SIZE_CLASSES,
    VERSIONS,
    CountedKeys,
    CountedRun,
    Int64Array,
    added,
)
from cleaner_jobs.messages import TaskProblem
from compactor.inspection.inspection import (
    BatchKind,
    BlockingTransaction,
    HeavyKey,
    Keys,
    LogInspection,
    SizeClass,
    TombstoneKind,
    Tombstones,
)
from compactor.inspection.open_transactions import open_transactions, record_at
from compactor.settings.topic_config import TopicConfig
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.coordinator_records import CONSUMER_OFFSETS, TRANSACTION_STATE, decode_key
from storage.log.log_dir import PartitionListing

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
    """Return the size classes that have a member. at: where their counts begin."""
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


def heaviest(keys: Sequence[CountedKeys], by: int, most: int) -> list[tuple[int, int, int]]:
    """The keys with most versions or bytes, by HEAVY_COLUMNS. by: VERSIONS or BYTES."""
    rows = [row for of_part in keys for row in (of_part.most_versions, of_part.most_bytes)[by]]
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
    """Return when the first tombstone may go by its horizon, if a cleaning comes by then.

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
    # which may be that of a tombstone after the bound, and past
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


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedLog:
    """A log that is to be inspected, and what is known of it."""

    listing: PartitionListing
    log_dir: str
    config: TopicConfig
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int  # exclusive
    has_clean_shutdown: bool
    plan: str  # what a round would do with it, and why


class CountedLog(NamedTuple):
    """What the tasks have counted of a log."""

    runs: Sequence[CountedRun]  # in the order of the log
    keys: Sequence[CountedKeys]
    problem: TaskProblem | None


class Presentation(NamedTuple):
    """What an inspection follows, and how much of it is shown."""

    as_of_ms: int
    heavy_keys: int


def inspected(log: InspectedLog, counted: CountedLog, shown: Presentation) -> LogInspection:
    counters = added([run.counters for run in counted.runs])
    read_bytes = sum(run.log_bytes for run in counted.runs)
    log_bytes = sum(segment.log_bytes for segment in log.listing.segments)
    sums = np.array([[0] * KEY_SUMS, *(keys.sums for keys in counted.keys)], np.int64).sum(axis=0)
    keys = keys_of(sums)
    cleaning = Cleaning(log.config.is_compacted, log.config.delete_retention_ms, shown.as_of_ms)
    whole_keys = keys if read_bytes == log_bytes else None
    tombstones = tombstones_of(counters, whole_keys, cleaning)
    aborted = int(counters[ABORTED_RECORDS])
    kinds = batch_kinds(counters)
    problem = counted.problem and _problem_text(counted.problem)
    found_open: tuple[BlockingTransaction, ...] = ()
    try:
        found_open = tuple(
            open_transactions(
                log.listing, log.log_start_offset, log.has_clean_shutdown, shown.as_of_ms
            )
        )
    except (CorruptFileError, OSError) as error:
        problem = problem or str(error)
    return LogInspection(
        log_dir=log.log_dir,
        topic=log.listing.topic,
        partition=log.listing.partition,
        segments=len(log.listing.segments),
        bytes=log_bytes,
        read_bytes=read_bytes,
        problem=problem,
        plan=log.plan,
        batches=sum(kind.batches for kind in kinds),
        records=int(counters[RECORDS]),
        record_bytes=int(counters[RECORD_BYTES]),
        control_records=int(counters[CONTROL_RECORDS]),
        aborted_records=aborted,
        null_keys=int(counters[NULL_KEYS]),
        empty_batches=int(counters[EMPTY_BATCHES]),
        first_ms=least_of(counters, LEAST_TIMESTAMP),
        last_ms=greatest_of(counters, GREATEST_TIMESTAMP),
        kinds=kinds,
        batch_sizes=size_classes(counters, BATCH_SIZES_AT, SIZE_CLASSES),
        record_sizes=size_classes(counters, RECORD_SIZES_AT, SIZE_CLASSES),
        greatest_batch=greatest_of(counters, GREATEST_BATCH),
        greatest_record=greatest_of(counters, GREATEST_RECORD),
        tombstones=tombstones,
        keys=keys,
        most_versions=_heavy(log, counted, VERSIONS, shown),
        most_bytes=_heavy(log, counted, BYTES, shown),
        open_transactions=found_open,
        gains_nothing=not (keys.duplicates or tombstones.records or aborted),
    )


def _heavy(
    log: InspectedLog, counted: CountedLog, by: int, shown: Presentation
) -> tuple[HeavyKey, ...]:
    heavy = heaviest(counted.keys, by, shown.heavy_keys)
    return tuple(_heavy_key(log.listing, *key) for key in heavy)


def heaviest_parts(
    log: InspectedLog, counted: CountedLog, part: int, shown: Presentation
) -> tuple[HeavyKey, ...]:
    """Return the groups or topics with most bytes in a log of `__consumer_offsets`.

    part: BY_GROUP or BY_TOPIC.
    """
    told = []
    for versions, size, offset in heaviest(counted.keys, BYTES, shown.heavy_keys):
        key, name = _key_at(log.listing, offset), None
        if key is not None:
            fields = decode_key(CONSUMER_OFFSETS, key).fields or {}
            names = ("topic",) if part == BY_TOPIC else ("group", "groupId")
            name = next((fields[n] for n in names if n in fields), None)
        told.append(HeavyKey(name, False, versions, size, offset))
    return tuple(told)


def _heavy_key(listing: PartitionListing, versions: int, size: int, offset: int) -> HeavyKey:
    key = _key_at(listing, offset)
    text, is_hex = (None, False) if key is None else _readable(listing.topic, key)
    return HeavyKey(text, is_hex, versions, size, offset)


def _key_at(listing: PartitionListing, offset: int) -> bytes | None:
    """None, too, where a broker at work has removed what was counted."""
    try:
        record = record_at(listing, offset)
    except (CorruptFileError, OSError):
        return None
    return None if record is None else record.key


def _readable(topic: str, key: bytes) -> tuple[str, bool]:
    """Return a key as text, or in hex; a coordinator's key in words."""
    if topic in (CONSUMER_OFFSETS, TRANSACTION_STATE):
        found = decode_key(topic, key)
        if found.fields is not None:
            facts = ", ".join(f"{name} {value}" for name, value in found.fields.items())
            return f"{found.name}: {facts}", False
    try:
        return key.decode(), False
    except UnicodeDecodeError:
        return key.hex(), True


def _problem_text(problem: TaskProblem) -> str:
    at = f", byte {problem.position}" if problem.position >= 0 else ""
    return f"{problem.path}{at}: {problem.problem}"
