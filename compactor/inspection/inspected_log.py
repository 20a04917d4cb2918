"""What was counted of one log, put together with what its files say beside that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
    added,
)
from cleaner_jobs.messages import TaskProblem
from compactor.inspection import counted_log
from compactor.inspection.counted_log import Cleaning
from compactor.inspection.inspection import BlockingTransaction, HeavyKey, LogInspection
from compactor.inspection.open_transactions import open_transactions
from compactor.inspection.record_at import record_at
from compactor.settings.topic_config import TopicConfig
from storage.errors import CorruptFileError
from storage.formats.coordinator_records import CONSUMER_OFFSETS, TRANSACTION_STATE, decode_key
from storage.log.log_dir import PartitionListing


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
    """What an inspection goes by, and how much of it is told."""

    as_of_ms: int
    heavy_keys: int


def inspected(log: InspectedLog, found: CountedLog, shown: Presentation) -> LogInspection:
    counters = added([run.counters for run in found.runs])
    read_bytes = sum(run.log_bytes for run in found.runs)
    log_bytes = sum(segment.log_bytes for segment in log.listing.segments)
    sums = np.array([[0] * KEY_SUMS, *(keys.sums for keys in found.keys)], np.int64).sum(axis=0)
    keys = counted_log.keys_of(sums)
    cleaning = Cleaning(log.config.is_compacted, log.config.delete_retention_ms, shown.as_of_ms)
    whole_keys = keys if read_bytes == log_bytes else None
    tombstones = counted_log.tombstones_of(counters, whole_keys, cleaning)
    aborted = int(counters[ABORTED_RECORDS])
    kinds = counted_log.batch_kinds(counters)
    problem = found.problem and _problem_text(found.problem)
    found_open: tuple[BlockingTransaction, ...] = ()
    try:
        found_open = _open_transactions(log, shown)
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
        first_ms=counted_log.least_of(counters, LEAST_TIMESTAMP),
        last_ms=counted_log.greatest_of(counters, GREATEST_TIMESTAMP),
        kinds=kinds,
        batch_sizes=counted_log.size_classes(counters, BATCH_SIZES_AT, SIZE_CLASSES),
        record_sizes=counted_log.size_classes(counters, RECORD_SIZES_AT, SIZE_CLASSES),
        greatest_batch=counted_log.greatest_of(counters, GREATEST_BATCH),
        greatest_record=counted_log.greatest_of(counters, GREATEST_RECORD),
        tombstones=tombstones,
        keys=keys,
        most_versions=_heavy(log, found, VERSIONS, shown),
        most_bytes=_heavy(log, found, BYTES, shown),
        open_transactions=found_open,
        gains_nothing=not (keys.duplicates or tombstones.records or aborted),
    )


def _open_transactions(log: InspectedLog, shown: Presentation) -> tuple[BlockingTransaction, ...]:
    found = open_transactions(
        log.listing, log.log_start_offset, log.has_clean_shutdown, shown.as_of_ms
    )
    return tuple(found)


def _heavy(
    log: InspectedLog, found: CountedLog, by: int, shown: Presentation
) -> tuple[HeavyKey, ...]:
    heavy = counted_log.heaviest(found.keys, by, shown.heavy_keys)
    return tuple(_heavy_key(log.listing, *key) for key in heavy)


def heaviest_parts(
    log: InspectedLog, found: CountedLog, part: int, shown: Presentation
) -> tuple[HeavyKey, ...]:
    """The groups or topics with most bytes in a log of `__consumer_offsets`. part: BY_GROUP or
    BY_TOPIC.
    """
    told = []
    for versions, size, offset in counted_log.heaviest(found.keys, BYTES, shown.heavy_keys):
        try:
            record = record_at(log.listing, offset)
        except (CorruptFileError, OSError):
            record = None
        name = None
        if record is not None and record.key is not None:
            fields = decode_key(CONSUMER_OFFSETS, record.key).fields or {}
            names = ("topic",) if part == BY_TOPIC else ("group", "groupId")
            name = next((fields[n] for n in names if n in fields), None)
        told.append(HeavyKey(name, False, versions, size, offset))
    return tuple(told)


def _heavy_key(listing: PartitionListing, versions: int, size: int, offset: int) -> HeavyKey:
    try:
        record = record_at(listing, offset)
    except (CorruptFileError, OSError):  # it was there when it was counted: a broker is at work
        record = None
    text, is_hex = None, False
    if record is not None and record.key is not None:
        text, is_hex = _readable(listing.topic, record.key)
    return HeavyKey(text, is_hex, versions, size, offset)


def _readable(topic: str, key: bytes) -> tuple[str, bool]:
    """As text, or in hex; one of a coordinator as what it says."""
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
