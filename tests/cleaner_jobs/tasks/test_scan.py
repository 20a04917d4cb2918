"""What scan tasks leave: parts that cover their stretches, cut where they must be."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cleaner_jobs import txn_batches
from cleaner_jobs.kernels import scan_runs
from cleaner_jobs.kernels.offset_map import ENTRY_WORDS
from cleaner_jobs.kernels.scan_runs import scan_run
from cleaner_jobs.messages import Part, PartSection, RoundSettings, Source, Stretch
from cleaner_jobs.problems import MiswrittenError, WorkFileError
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.tasks import scan, window_reader
from cleaner_jobs.tasks.resolve import edges_of, read_entries, states_of
from cleaner_jobs.tasks.scan import scan_stretches
from cleaner_jobs.txn_batches import (
    ABORT,
    COMMIT,
    DATA,
    EMPTY_CONTROL,
    HORIZON_AHEAD,
    HORIZON_PASSED,
    NO_HORIZON,
    OTHER_CONTROL,
    load_array,
    read_txn_batches,
    save_array,
)
from cleaner_jobs.work_file import WorkFiles
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.files.files import Files, entry_of
from storage.files.local import LOCAL
from storage.formats import batch_windows
from storage.formats.batch_columns import (
    ABORTED,
    BAD_RECORD,
    CONTROL_RECORD,
    EXPIRED,
    IN_MAP,
    NULL_KEY,
    SUPERSEDED,
    TOMBSTONE,
    parse_records,
)
from storage.formats.batch_windows import Buffers
from tests.storage.kafka_batches import COMMIT_MARKER
from tests.storage.kernels.test_key_hash import slow_hash
from tests.support.kernel_steps import uncompiled
from tests.support.local_round import HASH_KEY
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    LEADER_CHANGE_KEY,
    MARKER,
    NOW_MS,
    batch,
    keyed,
    marker,
    of_producer,
    packed,
    record,
)
from tests.support.made_values import stretch
from tests.support.reference_batch import (
    CONTROL,
    HORIZON,
    ReferenceBatch,
    encode,
    sum_of_heads,
)


@dataclass
class Scanned:
    parts: list[Part]
    errors: list[tuple[int, Exception]]
    states: list[list[int]]  # of each part's records


def entries_of(files: WorkFiles, part: Part, hash_partition: int) -> NDArray[np.uint64]:
    edges = edges_of(files, part, hash_partition)
    rows = np.empty((edges[1] - edges[0], ENTRY_WORDS), np.uint64)
    read_entries(files, part, edges, rows)
    return rows


class Scanner:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.bits = 0
        self.first_dirty_offset, self.map_end_offset = 0, 2**62
        self.aborted_file = ""

    def segment(
        self,
        batches: Sequence[ReferenceBatch | bytes],
        log_id: int = 0,
        group: int = 0,
        segment: int = 0,
        cut_at: Sequence[int] = (),
    ) -> list[Stretch]:
        """Write a segment, and cut it before the batches with these numbers."""
        raws = [raw if isinstance(raw, bytes) else encode(raw) for raw in batches]
        path = self.root / f"{log_id}-{group}-{segment}.log"
        path.write_bytes(b"".join(raws))
        found, base_offset = entry_of(LOCAL, str(path)), int.from_bytes(raws[0][:8], "big")
        source = Source.of(str(path), base_offset, found)
        edges = [sum(map(len, raws[:number])) for number in (0, *cut_at, len(raws))]
        return [
            stretch(
                source,
                start,
                end,
                log_id=log_id,
                group=group,
                segment=segment,
                first_dirty_offset=self.first_dirty_offset,
                map_end_offset=self.map_end_offset,
                hash_partition_bits=self.bits,
                aborted_file=self.aborted_file,
            )
            for start, end in pairwise(edges)
        ]

    def scan(self, *stretches: Stretch) -> Scanned:
        settings = RoundSettings("run", str(self.root), NOW_MS, *HASH_KEY, False)
        out = str(self.root / "out.parts")
        found = list(scan_stretches(list(stretches), settings, out, Buffers()))
        parts = [item for item in found if isinstance(item, Part)]
        with WorkFiles() as files:
            states = [states_of(files, part).tolist() for part in parts]
        return Scanned(parts, [e for e in found if not isinstance(e, Part)], states)


@pytest.fixture
def scanner(tmp_path: Path) -> Scanner:
    return Scanner(tmp_path)


MIXED = batch(
    record(0, b"a", b"1"),
    record(1, None, b"2"),
    record(2, b"b", None),
    record(3, b"a", b""),
    record(4, b"c", None),
    attributes=HORIZON,
    base_timestamp=NOW_MS,
)


def test_a_part_counts_by_reason_and_keeps_a_state_for_each_record(scanner: Scanner) -> None:
    """E-1, E-4, E-6, E-10; a tombstone of a batch with a horizon needs none."""
    more = batch(record(5, b"b", None), record(6, b"d"), record(7, None, None))
    found = scanner.scan(*scanner.segment([MIXED, more]))
    (part,) = found.parts
    in_map = [SUPERSEDED, TOMBSTONE | SUPERSEDED, 0, TOMBSTONE | EXPIRED, TOMBSTONE, 0]
    expected = [IN_MAP | state for state in in_map]
    expected.insert(1, NULL_KEY)
    assert found.states == [[*expected, TOMBSTONE | NULL_KEY]]
    sizes = len(encode(MIXED)), len(encode(more))
    heads = sum_of_heads([encode(MIXED), encode(more)])
    assert part.sections == (PartSection(0, 0, sum(sizes), 0, 0, 7, heads),)
    assert (part.log_bytes, part.batches, part.records) == (sum(sizes), 2, 8)
    assert (part.superseded, part.null_keys, part.expired, part.aborted) == (2, 2, 1, 0)
    assert (part.entries, part.survivors, part.control_records) == (4, 4, 0)
    assert (part.tombstones_without_horizon, part.empty_batches) == (1, 0)
    assert part.first_record_offset == 0


def test_entries_are_what_may_stay_by_hash_partition(scanner: Scanner) -> None:
    scanner.bits = 2
    found = scanner.scan(*scanner.segment([keyed(100, "abcdefgh")]))
    (part,) = found.parts
    hashes = {slow_hash(b"%c" % key, *HASH_KEY): i for i, key in enumerate(b"abcdefgh")}
    seen = 0
    with WorkFiles() as files:
        for hash_partition in range(4):
            for first, second, meta in entries_of(files, part, hash_partition).tolist():
                assert first >> 62 == hash_partition
                ordinal = hashes[first, second]
                assert meta == ordinal << 32 | ordinal  # offsets are relative to the first one
                seen += 1
    assert seen == 8 and part.first_record_offset == 100


def test_the_clean_section_is_not_deduplicated(scanner: Scanner) -> None:
    """E-62: the checkpoint may lie inside a batch."""
    scanner.first_dirty_offset = 3
    found = scanner.scan(*scanner.segment([keyed(0, "aaaaa")]))
    assert found.states == [[0, 0, 0, IN_MAP | SUPERSEDED, IN_MAP]]
    assert found.parts[0].entries == 4


def test_stretches_of_a_group_go_into_one_part_with_a_section_each_segment(
    scanner: Scanner,
) -> None:
    one, two, three = keyed(0, "ab"), keyed(2, "ac"), keyed(4, "d")
    first = scanner.segment([one, two], cut_at=[1])
    second = scanner.segment([three], segment=1)
    found = scanner.scan(*first, *second)
    (part,) = found.parts
    assert len(first) == 2
    size = len(encode(one)) + len(encode(two))
    assert part.sections == (
        PartSection(0, 0, size, 0, 0, 3, sum_of_heads([encode(one), encode(two)])),
        PartSection(1, 0, len(encode(three)), 4, 4, 4, sum_of_heads([encode(three)])),
    )
    assert found.states == [[IN_MAP | SUPERSEDED, *[IN_MAP] * 4]]


def test_a_part_ends_with_its_group_and_its_log(scanner: Scanner) -> None:
    stretches = [
        *scanner.segment([keyed(0, "a")]),
        *scanner.segment([keyed(1, "a")], group=1),
        *scanner.segment([keyed(0, "ab")], log_id=1, group=1),
    ]
    found = scanner.scan(*stretches)
    assert [(p.log_id, p.group, p.records) for p in found.parts] == [
        (0, 0, 1),
        (0, 1, 1),
        (1, 1, 2),
    ]
    assert [p.superseded for p in found.parts] == [0, 0, 0]
    assert [part.block_at for part in found.parts] == sorted({p.block_at for p in found.parts})


def test_a_part_ends_when_it_is_full(scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is never cut, however many records it has."""
    monkeypatch.setattr(scan, "PART_RECORDS", 5)
    batches = [keyed(0, "abc"), keyed(3, "ab"), keyed(5, "abcdefgh"), keyed(13, "a")]
    codecs = [Codec.NONE, Codec.GZIP, Codec.NONE, Codec.GZIP]
    raws = [packed(made, codec) for made, codec in zip(batches, codecs, strict=True)]
    found = scanner.scan(*scanner.segment(raws))
    assert [part.records for part in found.parts] == [5, 8, 1]
    edges = [0, len(raws[0]) + len(raws[1]), sum(map(len, raws[:3])), sum(map(len, raws))]
    assert [part.sections[0][1:3] for part in found.parts] == list(pairwise(edges))
    assert [part.sections[0].first_ordinal for part in found.parts] == [0, 0, 0]
    assert [part.first_record_offset for part in found.parts] == [0, 5, 13]


def test_a_part_ends_before_its_offsets_outgrow_32_bits(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MAX_PART_OFFSETS", 100)
    stretches = [
        *scanner.segment([keyed(10, "a"), keyed(109, "b")], cut_at=[1]),
        *scanner.segment([keyed(110, "c")], segment=1),
        *scanner.segment([keyed(209, "d")], segment=2),
        *scanner.segment([batch(record(210, b"e"))], segment=3),
    ]
    found = scanner.scan(*stretches)
    assert [part.first_record_offset for part in found.parts] == [10, 110, 210]
    assert [part.records for part in found.parts] == [2, 2, 1]


def test_empty_batches_are_covered_and_counted(scanner: Scanner) -> None:
    empty = ReferenceBatch(0, 4, 0, 0, -1, -1)
    found = scanner.scan(
        *scanner.segment([empty, keyed(5, "a"), ReferenceBatch(6, 6, 0, 0, -1, -1)])
    )
    (part,) = found.parts
    assert (part.records, part.batches, part.empty_batches) == (1, 3, 2)
    assert part.sections[0][4:6] == (0, 6)
    (only,) = scanner.scan(*scanner.segment([empty])).parts
    assert (only.records, only.entries, only.sections[0][1:3]) == (0, 0, (0, 61))


def test_a_log_with_an_error_is_given_up_and_the_others_go_on(scanner: Scanner) -> None:
    wrong = bytearray(encode(keyed(4, "d")))
    wrong[-1] ^= 1
    stretches = [
        *scanner.segment([keyed(0, "a")], log_id=0),
        *scanner.segment([keyed(0, "abc"), bytes(wrong)], log_id=1, cut_at=[1]),
        *scanner.segment([keyed(9, "a")], log_id=1, segment=1),
        *scanner.segment([keyed(0, "xy")], log_id=2),
    ]
    found = scanner.scan(*stretches)
    assert [(part.log_id, part.records) for part in found.parts] == [(0, 1), (2, 2)]
    ((log_id, error),) = found.errors
    assert log_id == 1
    assert isinstance(error, CorruptFileError)
    assert (os.path.basename(error.path), error.position) == (
        "1-0-0.log",
        len(encode(keyed(0, "abc"))),
    )
    assert found.states[-1] == [IN_MAP, IN_MAP]


def test_transactional_and_control_batches_are_noted_in_order(scanner: Scanner) -> None:
    """Of a batch of its own kind only what the driver needs to go through them (C-8)."""
    empty = of_producer(ReferenceBatch(30, 31, 0, 0, -1, -1), 7, MARKER)
    first = [
        encode(keyed(0, "ab")),
        encode(of_producer(keyed(2, "ab"), 7)),
        marker(4, 7, ABORT_KEY),
        marker(5, 8, COMMIT_KEY, NOW_MS + 1),
        encode(batch(record(6, LEADER_CHANGE_KEY), record(7, ABORT_KEY), attributes=CONTROL)),
    ]
    second = [
        encode(of_producer(keyed(20, "c"), 8)),
        encode(empty),
        marker(32, 8, ABORT_KEY, NOW_MS),
    ]
    found = scanner.scan(*scanner.segment(first), *scanner.segment(second, segment=1))
    (part,) = found.parts
    assert found.errors == []
    at = [sum(map(len, first[:i])) for i in range(5)]
    other = [sum(map(len, second[:i])) for i in range(3)]
    assert read_txn_batches(part).tolist() == [
        (at[1], 2, 3, 7, 0, DATA, 2, NO_HORIZON),
        (at[2], 4, 4, 7, 0, ABORT, 1, NO_HORIZON),
        (at[3], 5, 5, 8, 0, COMMIT, 1, HORIZON_AHEAD),
        (at[4], 6, 7, -1, 0, OTHER_CONTROL, 2, NO_HORIZON),  # the first record alone (C-8.6)
        (other[0], 20, 20, 8, 1, DATA, 1, NO_HORIZON),
        (other[1], 30, 31, 7, 1, EMPTY_CONTROL, 0, NO_HORIZON),
        (other[2], 32, 32, 8, 1, ABORT, 1, HORIZON_PASSED),
    ]
    assert (part.txn_batches, part.control_records, part.records) == (7, 5, 10)


def test_noted_batches_that_are_damaged_are_no_ones(scanner: Scanner) -> None:
    found = scanner.scan(*scanner.segment([keyed(0, "a"), COMMIT_MARKER]))
    (part,) = found.parts
    assert len(read_txn_batches(part)) == 1
    data = bytearray(Path(part.file).read_bytes())
    data[part.txn_at + 5] ^= 1
    for damaged in (data, data[: part.txn_at + 7]):
        Path(part.file).write_bytes(damaged)
        with pytest.raises(WorkFileError, match=r"out\.parts"):
            read_txn_batches(part)


def test_markers_are_never_in_the_map(scanner: Scanner) -> None:
    """Data with the bytes of a marker for a key is another matter."""
    data = batch(record(1, ABORT_KEY), record(2, ABORT_KEY))
    found = scanner.scan(*scanner.segment([marker(0, 7, ABORT_KEY), data, marker(3, 7, ABORT_KEY)]))
    (part,) = found.parts
    assert found.states == [[CONTROL_RECORD, IN_MAP | SUPERSEDED, IN_MAP, CONTROL_RECORD]]
    assert (part.entries, part.survivors, part.superseded) == (1, 1, 1)


def test_ranges_say_what_is_aborted(scanner: Scanner) -> None:
    """By producer and last offset; for the map and for the cleaning apart (C-7.11)."""
    scanner.aborted_file = str(scanner.root / "ranges")
    ranges = [[7, 3, 3, 3], [7, 9, 11, 1], [9, 0, 5, 2]]
    save_array(scanner.aborted_file, np.array(ranges, np.int64))
    made = [
        of_producer(keyed(0, "ab"), 7),  # ends at 1
        of_producer(keyed(2, "cd"), 7),  # at 3
        of_producer(keyed(4, "Ef"), 9),  # at 5, for the cleaning alone: hides none, is in the map
        of_producer(keyed(6, "cf"), 8),  # of another producer
        of_producer(keyed(8, "gg"), 7),  # for the map alone
        of_producer(keyed(10, "h"), 7, attributes=0),  # not transactional
    ]
    found = scanner.scan(*scanner.segment(made))
    assert found.states == [
        [
            *[IN_MAP] * 2,
            *[ABORTED] * 2,
            *[ABORTED | TOMBSTONE | IN_MAP, ABORTED],  # 7 supersedes 5, which goes anyway
            *[IN_MAP] * 2,
            *[0] * 2,
            IN_MAP,
        ]
    ]
    (part,) = found.parts
    assert (part.aborted, part.superseded, part.entries, part.survivors) == (4, 0, 8, 7)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_damaged_control_record_sets_its_log_aside(scanner: Scanner, key: bytes | None) -> None:
    wrong = encode(of_producer(batch(record(1, key, b"")), 7, MARKER))
    found = scanner.scan(*scanner.segment([encode(keyed(0, "a")), wrong]))
    assert found.parts == []
    ((_, error),) = found.errors
    assert isinstance(error, CorruptFileError)
    assert error.position == len(encode(keyed(0, "a")))
    assert "record 0 of the control batch has no version and type for a key" in str(error)


@pytest.mark.parametrize("what", ["time", "size", "gone"])
def test_a_file_that_is_in_use_sets_its_log_aside(scanner: Scanner, what: str) -> None:
    stretches = scanner.segment([keyed(0, "a")])
    path = stretches[0].source.path
    if what == "time":
        os.utime(path, ns=(1, 1))
    elif what == "size":
        Path(path).write_bytes(Path(path).read_bytes() + b"x")
    else:
        os.remove(path)
    found = scanner.scan(*stretches)
    assert found.parts == []
    assert path in str(found.errors[0][1])


@pytest.fixture(params=["in a run of a kernel", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """How plain batches are scanned; the module that parses their records then."""
    if request.param == "step by step":
        monkeypatch.setattr(window_reader, "pread_address", lambda: 0)
        return window_reader
    monkeypatch.setattr(scan, "scan_run", uncompiled(scan_runs.scan_run))
    return scan_runs


def test_a_file_that_changes_while_it_is_read_sets_its_log_aside(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, way: ModuleType
) -> None:
    stretches = scanner.segment([keyed(0, "a")])
    path = stretches[0].source.path

    def parse_and_touch(*given: Any) -> Any:
        os.utime(path, ns=(1, 1))
        return parse_records(*given)

    monkeypatch.setattr(way, "parse_records", parse_and_touch)
    ((_, error),) = scanner.scan(*stretches).errors
    assert isinstance(error, LogChangedError)


def test_a_bit_that_flips_before_its_key_is_hashed_sets_the_log_aside(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, way: ModuleType
) -> None:
    """Else the record would count as one of another key, and what is older than it would go."""
    flips: list[int] = []

    def parse_flipped(buffer: Any, *given: Any) -> Any:
        if not flips:
            flips.append(int(np.flatnonzero(buffer == ord("b"))[0]))
            buffer[flips[0]] ^= 1  # c
        return parse_records(buffer, *given)

    monkeypatch.setattr(way, "parse_records", parse_flipped)
    found = scanner.scan(*scanner.segment([keyed(0, "abc")]))
    assert flips and found.parts == []
    ((_, error),) = found.errors
    assert isinstance(error, CorruptFileError) and "checksum" in str(error)


def random_segment(chance: Random, codecs: Sequence[Codec]) -> list[ReferenceBatch | bytes]:
    """Forty batches with a few keys, each of one of these codecs."""
    made: list[ReferenceBatch | bytes] = []
    offset = 0
    for _ in range(40):
        keys = "".join(chance.choices("abcdeABC.", k=chance.randrange(1, 9)))
        codec = chance.choice(codecs)
        made.append(packed(keyed(offset, keys), codec) if codec else keyed(offset, keys))
        offset += len(keys) + chance.randrange(3)
    return made


@pytest.mark.parametrize("seed", range(14))
def test_a_run_of_a_kernel_finds_what_its_steps_find(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever is read and decompressed at a time. The first six are plain but for a batch of lz4;
    among the others are plain ones, and such of snappy, which no kernel takes."""
    chance = Random(seed)
    codecs = [chance.choice([Codec.GZIP, Codec.LZ4, Codec.ZSTD])] * 12
    codecs += [*Codec] if seed % 2 else []
    made = random_segment(chance, [Codec.NONE] if seed < 6 else codecs)
    if seed < 6:
        made[20] = packed(made[20], Codec.LZ4)  # type: ignore[arg-type]
    scanner.first_dirty_offset = chance.randrange(20)
    stretches = scanner.segment(made, cut_at=[chance.randrange(5, 35)])
    monkeypatch.setattr(scan, "PART_RECORDS", 10**6)
    monkeypatch.setattr(batch_windows, "WINDOW_BYTES", 300)
    found, runs = [], []

    def counted(*given: Any) -> Any:
        ended = scan_run(*given)
        *_, is_packed = given
        runs.append(ended[0] if is_packed or seed < 6 else 0)
        return ended

    monkeypatch.setattr(scan, "scan_run", counted)
    sizes = ((1 << 19, 1 << 14, 1 << 19), (chance.randrange(100, 700), 2, 600))
    for chunk_bytes, run_batches, payload_bytes in sizes:
        monkeypatch.setattr(window_reader, "CHUNK_BYTES", chunk_bytes)
        monkeypatch.setattr(window_reader, "RUN_BATCHES", run_batches)
        monkeypatch.setattr(window_reader, "CHUNK_PAYLOAD_BYTES", payload_bytes)
        found.append((scanner.scan(*stretches), Path(scanner.root, "out.parts").read_bytes()))
    assert any(runs)
    monkeypatch.setattr(window_reader, "pread_address", lambda: 0)
    found.append((scanner.scan(*stretches), Path(scanner.root, "out.parts").read_bytes()))
    assert found[0] == found[1] == found[2]
    assert found[0][0].parts and not found[0][0].errors


@pytest.mark.parametrize(
    ("codec", "kernel"),
    [
        (Codec.NONE, "first_wrong_checksum"),
        (Codec.LZ4, "first_wrong_checksum"),
        (Codec.LZ4, "parse_records"),
    ],
)
def test_what_only_the_kernel_of_a_run_finds_wrong_sets_the_log_aside(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, codec: Codec, kernel: str
) -> None:
    """A bit that has turned back before the batches are gone through step by step."""
    answers = {"first_wrong_checksum": (0, 12345), "parse_records": (0, 0, BAD_RECORD, 0)}
    monkeypatch.setattr(scan, "scan_run", uncompiled(scan_runs.scan_run))
    monkeypatch.setattr(scan_runs, kernel, lambda *_: answers[kernel])
    found = scanner.scan(*scanner.segment([packed(keyed(0, "abc"), codec)]))
    assert found.parts == []
    ((_, error),) = found.errors
    assert isinstance(error, MiswrittenError)
    assert "sound when they were looked at again" in str(error)


@pytest.mark.parametrize("area", ["entries", "starts", "checksums", "states"])
def test_what_was_written_is_checked_when_it_is_read(scanner: Scanner, area: str) -> None:
    found = scanner.scan(*scanner.segment([keyed(0, "abcd")]))
    (part,) = found.parts
    at = {"entries": 5, "starts": 4 * 24 + 8, "checksums": 4 * 24 + 16, "states": 4 * 24 + 24}[area]
    path = Path(part.file)
    data = bytearray(path.read_bytes())
    assert len(data) == 4 * 24 + 2 * 8 + 8 + 4
    data[at] ^= 1
    path.write_bytes(data)
    with WorkFiles() as files, pytest.raises(CorruptFileError, match=r"out\.parts"):
        entries_of(files, part, 0)
        states_of(files, part)


def test_a_part_file_cut_short_anywhere_is_corrupt(scanner: Scanner) -> None:
    (part,) = scanner.scan(*scanner.segment([keyed(0, "ab")])).parts
    data = Path(part.file).read_bytes()
    for kept in range(len(data)):
        Path(part.file).write_bytes(data[:kept])
        with WorkFiles() as files, pytest.raises(CorruptFileError):
            entries_of(files, part, 0)
            states_of(files, part)


def test_states_are_a_copy_that_may_be_changed(scanner: Scanner) -> None:
    (part,) = scanner.scan(*scanner.segment([keyed(0, "ab")])).parts
    with WorkFiles() as files:
        states_of(files, part)[:] = np.uint8(SUPERSEDED)
        assert states_of(files, part).tolist() == [IN_MAP, IN_MAP]


def test_the_codec_makes_no_difference(scanner: Scanner) -> None:
    made = [keyed(0, "abcAB."), keyed(6, "cd")]
    plain = scanner.scan(*scanner.segment(made))
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        other = scanner.scan(*scanner.segment([packed(of, codec) for of in made]))
        assert other.states == plain.states
        assert other.parts[0].survivor_fingerprints == plain.parts[0].survivor_fingerprints


def test_what_is_aborted_of_a_log_is_read_once_for_all_its_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stretch(Source("0.log", 0, 0, 0, 0, 0, 0), 0, 0)
    files = [str(tmp_path / name) for name in "ab"]
    for number, path in enumerate(files):
        save_array(path, np.full((1, 4), number))
    read: list[str] = []

    def load(path: str, files: Files) -> NDArray[np.int64]:
        read.append(path)
        return load_array(path, files)

    monkeypatch.setattr(txn_batches, "load_array", load)
    ranges = txn_batches.AbortedRanges()
    found = [ranges.of(whole._replace(aborted_file=path)) for path in ["", *files, files[1], ""]]
    assert [own.tolist() for own in found] == [[], [[0] * 4], [[1] * 4], [[1] * 4], []]
    assert read == files
