"""The reader's own kernels against slow, obvious twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compactor.verification.reader_kernels import (
    FREE,
    HAS_KEY,
    SLACK_BYTES,
    TOMBSTONE,
    LatestOffsets,
    frame_entries,
    read_records,
)
from tests.support.reference_batch import ReferenceRecord, encode_record

SECRET = np.uint64(1), np.uint64(2)
texts = st.none() | st.binary(max_size=200)
records = st.builds(
    ReferenceRecord,
    offset=st.integers(0, 2**31 - 1),
    timestamp=st.integers(-(2**63), 2**63 - 1),
    key=texts,
    value=texts,
    headers=st.lists(st.tuples(st.binary(max_size=9), texts), max_size=3).map(tuple),
)


def read(payload: bytes, count: int) -> tuple[list[tuple[int, int, int]], int, list[object]]:
    columns = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 2), np.uint64),
        np.empty((count, 2), np.uint64),
        np.empty(count, np.uint8),
        np.empty(count, np.int64),
    )
    buffer = np.frombuffer(payload + bytes(SLACK_BYTES), np.uint8).copy()
    bounds = np.array([[0, len(payload)]], np.int64)
    bases = np.array([[0, 0, count]], np.int64)
    filled, bad = read_records(buffer, bounds, bases, SECRET, columns)
    offsets, timestamps, keys, contents, kinds, _ = (column[:filled] for column in columns)
    rows = list(zip(offsets.tolist(), timestamps.tolist(), kinds.tolist(), strict=True))
    return rows, bad, [(*k, *c) for k, c in zip(keys.tolist(), contents.tolist(), strict=True)]


@given(st.lists(records, max_size=5))
def test_records_are_told_apart_by_what_they_hold(made: list[ReferenceRecord]) -> None:
    rows, bad, hashes = read(b"".join(encode_record(r, 0, 0) for r in made), len(made))
    assert bad == -1
    kinds = [HAS_KEY * (r.key is not None) + TOMBSTONE * (r.value is None) for r in made]
    assert rows == [(r.offset, r.timestamp, k) for r, k in zip(made, kinds, strict=True)]
    for one, hash_of_one in zip(made, hashes, strict=True):
        for other, hash_of_other in zip(made, hashes, strict=True):
            is_same = (one.key, one.value, one.headers) == (other.key, other.value, other.headers)
            assert (hash_of_one == hash_of_other) is is_same


@given(records, st.data())
def test_a_record_cut_short_anywhere_does_not_parse(
    made: ReferenceRecord, data: st.DataObject
) -> None:
    raw = encode_record(made, 0, 0)
    kept = data.draw(st.integers(0, len(raw) - 1))
    rows, bad, _ = read(raw[:kept], 1)
    assert (rows, bad) == ([], 0)


def test_what_is_left_over_behind_the_last_record_does_not_parse() -> None:
    raw = encode_record(ReferenceRecord(0, 0, b"k", b"v"), 0, 0)
    assert read(raw + b"\0", 1)[1] == 0


@given(st.lists(st.integers(14, 60), max_size=8), st.integers(0, 80))
def test_whole_entries_are_framed(lengths: list[int], cut: int) -> None:
    entries = [bytes(8) + n.to_bytes(4, "big") + bytes(4) + b"\2" + bytes(n - 5) for n in lengths]
    data = b"".join(entries)
    kept = max(0, len(data) - cut)
    starts = [sum(map(len, entries[:i])) for i in range(len(entries))]
    whole = [s for s, e in zip(starts, entries, strict=True) if s + len(e) <= kept]
    buffer = np.frombuffer(data + bytes(SLACK_BYTES), np.uint8).copy()
    positions = np.empty(len(data) + 1, np.int64)
    count, at, is_bad = frame_entries(buffer, kept, positions)
    assert (positions[:count].tolist(), is_bad) == (whole, False)
    assert at == sum(len(e) for e in entries[:count])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=60), st.integers(1, 7))
def test_the_latest_offset_of_each_key(keys: list[tuple[int, int]], step: int) -> None:
    """Hashes that share a slot, too."""
    hashes = np.array([(k * 1024, v) for k, v in keys], np.uint64).reshape(-1, 2)
    offsets = np.arange(len(keys), dtype=np.int64)
    table = LatestOffsets()
    for at in range(0, len(keys), step):
        table.put(hashes[at : at + step], offsets[at : at + step])
    latest = {key: offset for offset, key in enumerate(keys)}
    assert table.count == len(latest)
    assert table.of(hashes).tolist() == [latest[key] for key in keys]
    assert table.of(np.array([[5, 99]], np.uint64)).tolist() == [FREE]


def test_the_table_grows() -> None:
    table = LatestOffsets()
    hashes = np.stack([np.arange(5000, dtype=np.uint64) * 7, np.arange(5000, dtype=np.uint64)], 1)
    for at in range(0, 5000, 100):
        table.put(hashes[at : at + 100], np.arange(at, at + 100, dtype=np.int64))
    assert table.count == 5000
    assert table.of(hashes).tolist() == list(range(5000))
