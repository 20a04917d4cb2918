"""What an inspection should find in a log: slow and plain, batch by batch and key by key."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from compactor import api
from compactor.inspection.inspection import LogInspection
from storage.codecs.compression import decompress
from storage.formats import checkpoint, txn_index
from storage.formats.legacy_messages import decode_records
from storage.formats.record import Record
from storage.formats.record_batch import BatchHeader
from storage.log.segment_reader import read_batches
from tests.conformance.fleet import Fleet
from tests.support.reference_batch import HEADER, ReferenceRecord, encode_record


@dataclass
class ReferenceKey:
    sizes: list[int] = field(default_factory=list)
    latest_offset: int = -1
    is_tombstone: bool = False


@dataclass
class ReferenceInspection:
    """Plain counts, by the names that a log's inspection has for them."""

    kinds: dict[tuple[str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0, 0])
    )
    batch_sizes: list[int] = field(default_factory=list)
    record_sizes: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    records: int = 0
    control_records: int = 0
    aborted_records: int = 0
    null_keys: int = 0
    empty_batches: int = 0
    tombstones: Counter[tuple[str, str]] = field(default_factory=Counter)
    tombstone_bytes: int = 0
    tombstone_times: list[int] = field(default_factory=list)
    horizons: list[int] = field(default_factory=list)  # of batches with tombstones
    keys: dict[bytes, ReferenceKey] = field(default_factory=lambda: defaultdict(ReferenceKey))

    def check(self, found: LogInspection) -> None:
        """Everything in it is as counted here."""
        assert found.problem is None
        assert {(k.format, k.codec): [k.batches, k.bytes, k.records] for k in found.kinds} == dict(
            self.kinds
        )
        assert found.batches == len(self.batch_sizes)
        assert classes(found.batch_sizes) == by_bits(self.batch_sizes)
        assert classes(found.record_sizes) == by_bits(self.record_sizes)
        assert found.greatest_batch == max(self.batch_sizes, default=None)
        assert found.greatest_record == max(self.record_sizes, default=None)
        assert (found.first_ms, found.last_ms) == span(self.times)
        assert found.records == self.records
        assert found.record_bytes == sum(self.record_sizes)
        assert found.control_records == self.control_records
        assert found.aborted_records == self.aborted_records
        assert found.null_keys == self.null_keys
        assert found.empty_batches == self.empty_batches
        self._check_tombstones(found)
        self._check_keys(found)

    def _check_tombstones(self, found: LogInspection) -> None:
        stones = found.tombstones
        assert {(k.section, k.horizon): k.records for k in stones.kinds} == dict(self.tombstones)
        assert stones.records == sum(self.tombstones.values())
        assert stones.bytes == self.tombstone_bytes
        assert (stones.oldest_ms, stones.newest_ms) == span(self.tombstone_times)
        assert stones.latest_of_their_keys == sum(k.is_tombstone for k in self.keys.values())

    def _check_keys(self, found: LogInspection) -> None:
        keys = found.keys
        live = [key for key in self.keys.values() if not key.is_tombstone]
        assert keys.keys == len(self.keys)
        assert keys.live_keys == len(live)
        assert keys.records == sum(len(key.sizes) for key in self.keys.values())
        assert keys.duplicates == keys.records - keys.keys
        assert keys.bytes == sum(sum(key.sizes) for key in self.keys.values())
        assert keys.live_bytes == sum(key.sizes[-1] for key in live)
        assert classes(keys.versions) == by_bits([len(key.sizes) for key in self.keys.values()])
        for heavy, weight in (
            (found.most_versions, lambda key: len(key.sizes)),
            (found.most_bytes, lambda key: sum(key.sizes)),
        ):
            ordered = sorted(
                self.keys.items(), key=lambda item: (-weight(item[1]), item[1].latest_offset)
            )
            assert [
                (bytes.fromhex(k.key or "") if k.is_hex else (k.key or "").encode(), k.versions,
                 k.bytes, k.latest_offset) for k in heavy
            ] == [
                (name, len(key.sizes), sum(key.sizes), key.latest_offset)
                for name, key in ordered[: len(heavy)]
            ]  # fmt: skip
            assert len(heavy) == min(10, len(self.keys))
        is_needless = keys.duplicates == found.tombstones.records == self.aborted_records == 0
        assert found.gains_nothing == is_needless


def check_golden_logs(log_dir: Path, fleet: Fleet, options: api.InspectOptions) -> None:
    """Every log there is counted as by hand. log_dir: of the fleet, before or after."""
    now_ms = fleet.now_ms
    given = api.Rules(
        topic_configs=str(fleet.topic_configs),
        any_clock=True,
        as_of=now_ms,
        assume_fully_replicated=True,
    )
    found = api.inspect(str(log_dir), (), given, options)
    plan = api.plan([str(log_dir)], given).round_plan
    log_starts = checkpoint.read(str(log_dir / checkpoint.LOG_START))
    judged = {f.judgement.partition.name: f.judgement for f in plan.facts}
    assert len(found.logs) > 50
    for log in found.logs:
        bounds = 0, 0
        if log.name in judged:
            judgement = judged[log.name]
            end = judgement.cleanable.first_uncleanable_offset
            bounds = judgement.first_dirty.offset, end
        log_start_offset = log_starts.get((log.topic, log.partition), 0)
        expected = inspect_slowly(log_dir / log.name, *bounds, now_ms, log_start_offset)
        try:
            expected.check(log)
        except AssertionError as error:
            error.add_note(log.name)
            raise


def inspect_slowly(
    partition: Path,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    now_ms: int,
    log_start_offset: int = 0,
) -> ReferenceInspection:
    """Read all segments of a partition, in order. What ended below the log start offset is not
    among the aborted transactions (C-8.2).
    """
    found = ReferenceInspection()
    bounds = first_dirty_offset, first_uncleanable_offset, now_ms
    aborted = [
        entry
        for path in sorted(partition.glob("*.txnindex"))
        for entry in txn_index.read(str(path))
        if entry.last_offset >= log_start_offset
    ]
    for path in sorted(partition.glob("*.log")):
        for position, header, raw in read_batches(str(path)):
            records = decode_records(raw, header, str(path), position)
            _add_batch(found, header, records)
            is_aborted = header.is_transactional and any(
                entry.producer_id == header.producer_id
                and entry.first_offset <= header.last_offset <= entry.last_offset
                for entry in aborted
            )
            if header.is_control:
                found.control_records += len(records)
            elif is_aborted:
                found.records += len(records)
                found.aborted_records += len(records)
            else:
                _add_records(
                    found,
                    header,
                    list(zip(records, _sizes(header, raw, records), strict=True)),
                    bounds,
                )
    return found


def _add_batch(found: ReferenceInspection, header: BatchHeader, records: list[Record]) -> None:
    cell = found.kinds[f"v{header.magic}", header.codec.name.lower()]
    cell[0] += 1
    cell[1] += header.size_bytes
    cell[2] += len(records)
    found.batch_sizes.append(header.size_bytes)
    found.empty_batches += not records


def _add_records(
    found: ReferenceInspection,
    header: BatchHeader,
    records: list[tuple[Record, int]],
    bounds: tuple[int, int, int],
) -> None:
    for record, size in records:
        found.records += 1
        found.record_sizes.append(size)
        if record.timestamp >= 0:
            found.times.append(record.timestamp)
        if record.key is None:
            found.null_keys += 1
            continue
        key = found.keys[record.key]
        key.sizes.append(size)
        key.latest_offset, key.is_tombstone = record.offset, record.value is None
        if record.value is None:
            found.tombstones[_section(record.offset, bounds), _horizon(header, bounds)] += 1
            found.tombstone_bytes += size
            if record.timestamp >= 0:
                found.tombstone_times.append(record.timestamp)
            if header.delete_horizon_ms is not None:
                found.horizons.append(header.delete_horizon_ms)


def _sizes(header: BatchHeader, raw: memoryview, records: list[Record]) -> list[int]:
    """What each record takes in its batch; one of a legacy batch, upgraded to format v2."""
    if header.magic == 2:
        packed = bytes(raw[HEADER.size :])
        return list(_lengths(decompress(header.codec, packed, "", 0), len(records)))
    return [
        len(
            encode_record(
                ReferenceRecord(*record._replace(headers=())),
                records[0].offset,
                records[0].timestamp,
            )
        )
        for record in records
    ]


def _lengths(payload: bytes, count: int) -> Iterator[int]:
    """Each record begins with its length, as a zig-zag varint (F-5.1)."""
    at = 0
    for _ in range(count):
        start, length, shift = at, 0, 0
        while True:
            byte = payload[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += length >> 1
        yield at - start


def _section(offset: int, bounds: tuple[int, int, int]) -> str:
    first_dirty_offset, first_uncleanable_offset, _ = bounds
    if offset >= first_uncleanable_offset:
        return "uncleanable"
    return "dirty" if offset >= first_dirty_offset else "clean"


def _horizon(header: BatchHeader, bounds: tuple[int, int, int]) -> str:
    if header.magic < 2:
        return "legacy"
    if header.delete_horizon_ms is None:
        return "none"
    return "passed" if header.delete_horizon_ms <= bounds[2] else "ahead"


def span(times: list[int]) -> tuple[int | None, int | None]:
    return min(times, default=None), max(times, default=None)


def by_bits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """How many sizes there are of each number of bits."""
    return {
        (2 ** (bits - 1) if bits else 0, 2**bits - 1): count
        for bits, count in Counter(size.bit_length() for size in sizes).items()
    }


def classes(found: tuple[tuple[int, int, int], ...]) -> dict[tuple[int, int], int]:
    return {(least, greatest): members for least, greatest, members in found}


def sizes_by_offset(partition: Path) -> Iterator[tuple[int, int]]:
    """Of every record of a partition: its offset, and what it takes."""
    for path in sorted(partition.glob("*.log")):
        for position, header, raw in read_batches(str(path)):
            records = decode_records(raw, header, str(path), position)
            for record, size in zip(records, _sizes(header, raw, records), strict=True):
                yield record.offset, size
