"""What was appended since a run has to be there, batch for batch: else a cleaning went over it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from compactor.originals.appended_since import check_appended
from compactor.originals.kept_manifest import FileMark, LogBefore
from compactor.originals.log_states import ChangedSinceError
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.formats.record import Record
from storage.log.log_dir import list_partition
from tests.support.legacy_writer import encode_message_set
from tests.support.made_log import batch, keyed, log_of, make_partition, record, write_segment
from tests.support.reference_batch import HORIZON, ReferenceBatch, encode

ACTIVE, END = 2, 4  # the base offset of the segment that was active at the run, and the log's end
AS_LEFT = encode(keyed(ACTIVE, "cd"))
ACTIVE_LOG, NEXT_LOG = f"{ACTIVE:020d}.log", f"{6:020d}.log"


def check(
    root: Path, appended: Sequence[bytes | ReferenceBatch], rolled: Sequence[ReferenceBatch] = ()
) -> None:
    partition = make_partition(root, {0: [keyed(0, "ab")], ACTIVE: [AS_LEFT]})
    with log_of(partition, ACTIVE).open("ab") as log:
        log.writelines(raw if isinstance(raw, bytes) else encode(raw) for raw in appended)
    if rolled:
        write_segment(partition, 6, rolled)
    check_partition(partition)


def check_partition(partition: Path) -> None:
    active = FileMark(ACTIVE_LOG, len(AS_LEFT), "0" * 16)
    before = LogBefore(None, (FileMark(f"{0:020d}.log", 1, "0" * 16), active), END, None, None)
    check_appended(list_partition(str(partition), "orders", 0), before)


def test_nothing_was_appended(tmp_path: Path) -> None:
    check(tmp_path, [])


def test_all_that_was_appended_is_there(tmp_path: Path) -> None:
    check(tmp_path, [keyed(4, "e"), keyed(5, "f")], [keyed(6, "gh")])


@pytest.mark.parametrize("magic", [0, 1])
def test_of_older_formats_too(tmp_path: Path, magic: int) -> None:
    """A compressed message has the offset of its last one: the first is read from inside."""
    records = [Record(at, 5 if magic else -1, b"k", b"v") for at in (4, 5)]
    check(tmp_path, [encode_message_set(magic, records, Codec.GZIP)], [keyed(6, "g")])


@pytest.mark.parametrize(
    ("appended", "rolled", "seen"),
    [
        ([keyed(5, "f")], [], f"{ACTIVE_LOG}, written after the run: missing: offset 4"),
        ([keyed(4, "e")], [keyed(6, "g")], f"{NEXT_LOG}, written after the run: missing: offset 5"),
        (
            [keyed(4, "ef")],
            [keyed(8, "g")],
            f"{NEXT_LOG}.*missing: offsets 6 to 7",
        ),
        ([batch(record(4, b"e"), last_offset=5)], [], "missing: some of offsets 4 to 5"),
        ([batch(record(5, b"f"), base_offset=4)], [], "missing: some of offsets 4 to 5"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path,
    appended: list[ReferenceBatch],
    rolled: list[ReferenceBatch],
    seen: str,
) -> None:
    with pytest.raises(ChangedSinceError, match=f"cleaned or deleted since: .*{seen}"):
        check(tmp_path, appended, rolled)


def test_a_batch_with_a_delete_horizon_was_cleaned(tmp_path: Path) -> None:
    """All of its records are there, but of a segment that a cleaning went over."""
    with pytest.raises(ChangedSinceError, match="the batch at offset 4 has a delete horizon"):
        check(tmp_path, [batch(record(4, b"e"), attributes=HORIZON)])


def test_a_torn_end_is_left_to_the_recovery(tmp_path: Path) -> None:
    check(tmp_path, [keyed(4, "e"), encode(keyed(5, "f"))[:-1]])


def test_a_torn_end_of_a_segment_that_others_follow_is_damage(tmp_path: Path) -> None:
    partition = make_partition(tmp_path, {0: [keyed(0, "ab")], ACTIVE: [AS_LEFT, keyed(4, "ef")]})
    write_segment(partition, 6, [keyed(6, "g")])
    torn = log_of(partition, ACTIVE)
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match=ACTIVE_LOG):
        check_partition(partition)
