"""C-16.3, C-16.4: which new segments a split makes, and what their files hold."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX
from storage.files.local import LOCAL
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn
from storage.log.splitting import IndexSettings, NewSegment, SplitBatch, plan_split

MAX = 2**31 - 1
AS_KAFKA = IndexSettings(4096, 10 << 20)


def batches(*offsets: tuple[int, int]) -> list[SplitBatch]:
    """Of 10 bytes each, by first and last offset."""
    return [
        SplitBatch(10 * number, 10, first, last, 1000 + number)
        for number, (first, last) in enumerate(offsets)
    ]


def planned(*offsets: tuple[int, int], aborted: Sequence[AbortedTxn] = ()) -> list[NewSegment]:
    return plan_split(batches(*offsets), aborted, AS_KAFKA.interval_bytes)


@pytest.mark.parametrize(
    ("offsets", "expected"),  # expected: base offset, position, bytes
    [
        ([(0, 0), (1, MAX)], [(0, 0, 20)]),
        ([(0, 0), (1, MAX + 1)], [(0, 0, 10), (1, 10, 10)]),
        ([(5, 5), (9, MAX + 5), (MAX + 6, MAX + 6)], [(5, 0, 20), (MAX + 6, 20, 10)]),
        ([(0, 0), (2**40, 2**40), (2**41, 2**41)], [(0, 0, 10), (2**40, 10, 10), (2**41, 20, 10)]),
        ([(7, 7), (3, 3)], [(7, 0, 10), (3, 10, 10)]),
        ([], []),
    ],
)
def test_a_new_segment_takes_the_batches_that_fit_above_its_first(
    offsets: list[tuple[int, int]], expected: list[tuple[int, int, int]]
) -> None:
    found = [(new.base_offset, new.position, new.log_bytes) for new in planned(*offsets)]
    assert found == expected


def test_an_aborted_transaction_goes_where_its_marker_is() -> None:
    far = 2**32
    near_marker, far_marker = AbortedTxn(1, 0, 1, 2), AbortedTxn(2, 0, far + 1, far + 2)
    found = planned((0, 1), (far, far + 1), aborted=(near_marker, far_marker))
    assert [list(new.aborted) for new in found] == [[near_marker], [far_marker]]


def test_no_segment_can_hold_a_batch_that_alone_is_too_long() -> None:
    (only,) = planned((0, MAX + 1))
    assert only.indexes.problem is not None
    assert only.why_refused(AS_KAFKA) is not None


def test_the_files_are_those_of_the_batches(tmp_path: Path) -> None:
    """In as many steps as batches that the indexes are made of at once, and one more."""
    far, count = 2**32, 2 * 4096 + 1
    source = tmp_path / "source.log"
    raws = [b"%010d" % number for number in range(count)]
    source.write_bytes(b"".join([*raws, b"the far one"]))
    near = batches(*((number, number) for number in range(count)))
    aborted = AbortedTxn(1, far, far, far + 1)
    given = [*near, SplitBatch(10 * count, 11, far, far, 5)]
    first, second = plan_split(given, [aborted], AS_KAFKA.interval_bytes)

    contents = {
        new.base_offset: {
            kind: b"".join(pieces)
            for kind, pieces in new.files(LOCAL, str(source), AS_KAFKA).items()
        }
        for new in (first, second)
    }
    every = 4096 // 10 + 1  # batches from one entry to the next
    indexed = range(every, count, every)
    assert contents[0] == {
        LOG: b"".join(raws),
        INDEX: b"".join(number.to_bytes(4) + (10 * number).to_bytes(4) for number in indexed),
        TIME_INDEX: b"".join(
            (1000 + number).to_bytes(8) + number.to_bytes(4) for number in (*indexed, count - 1)
        ),
    }
    assert first.bytes_since_entry == 10 * (count - indexed[-1])
    assert contents[far] == {
        LOG: b"the far one",
        INDEX: b"",
        TIME_INDEX: (5).to_bytes(8) + bytes(4),
        TXN_INDEX: txn_index.encode(aborted),
    }


def test_entries_are_left_out_where_an_index_has_no_room(tmp_path: Path) -> None:
    source = tmp_path / "source.log"
    source.write_bytes(bytes(40))
    limits = IndexSettings(interval_bytes=0, index_bytes=36)
    (only,) = plan_split(batches((0, 0), (1, 1), (2, 2), (3, 3)), (), 0)
    assert only.why_refused(limits) is not None
    files = {
        kind: b"".join(pieces) for kind, pieces in only.files(LOCAL, str(source), limits).items()
    }
    assert len(files[INDEX]) <= 36
    assert len(files[TIME_INDEX]) <= 36


def test_a_source_that_ends_too_early_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "source.log"
    source.write_bytes(bytes(19))
    (only,) = planned((0, 0), (1, 1))
    with pytest.raises(CorruptFileError, match="byte 19: the file ends here"):
        b"".join(only.files(LOCAL, str(source), AS_KAFKA)[LOG])
