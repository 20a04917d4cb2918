"""What the first stage of an inspection makes of files that change while it reads."""

from pathlib import Path

from crc32c import crc32c

from cleaner_jobs.inspection_counters import RECORDS, CountedRun
from cleaner_jobs.messages import Source
from cleaner_jobs.source_identity import LogChangedError
from cleaner_jobs.tasks.inspection import Choices, count_stretches
from storage.errors import CorruptFileError
from storage.files.files import entry_of
from storage.files.local import LOCAL
from storage.formats.batch_header import CHECKED_AT, CRC_AT, LAST_OFFSET_DELTA_AT, RECORDS_COUNT_AT
from storage.formats.batch_windows import Buffers
from tests.support.local_round import settings_in
from tests.support.made_log import NOW_MS, keyed
from tests.support.made_values import stretch
from tests.support.reference_batch import encode


def test_what_is_appended_to_an_active_segment_is_not_looked_at(tmp_path: Path) -> None:
    """Any other file that has changed fails its log."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(encode(keyed(0, "abc")))
    source = Source.of(str(path), 0, entry_of(LOCAL, str(path)))
    planned = stretch(source, 0, source.log_bytes)
    with path.open("ab") as log:
        log.write(encode(keyed(3, "d"))[:70])
    settings, out = settings_in(tmp_path, NOW_MS), str(tmp_path / "out")
    (failed,) = count_stretches([planned], settings, out, Buffers())
    assert not isinstance(failed, CountedRun) and isinstance(failed[1], LogChangedError)
    (run,) = count_stretches([planned], settings, out, Buffers(), Choices([str(path)]))
    assert isinstance(run, CountedRun)
    assert run.counters[RECORDS] == 3 and run.log_bytes == source.log_bytes


def claiming(data: bytes, count: int) -> bytes:
    """A batch that says of itself, with a right checksum, that it has so many records."""
    lying = bytearray(data)
    lying[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (count - 1).to_bytes(4, "big")
    lying[RECORDS_COUNT_AT : RECORDS_COUNT_AT + 4] = count.to_bytes(4, "big")
    lying[CRC_AT : CRC_AT + 4] = crc32c(bytes(lying[CHECKED_AT:])).to_bytes(4, "big")
    return bytes(lying)


def test_a_batch_without_room_for_its_records_is_named_also_behind_sound_ones(
    tmp_path: Path,
) -> None:
    """The kernel went on behind those with the places of the first ones, and beyond its rows.
    Seeds 7701821 and 7702034 of tests.bounds end the process where it does."""
    path = tmp_path / "00000000000000000000.log"
    sound = [encode(keyed(n, "abcdefgh"[n % 8])) for n in range(40)]
    path.write_bytes(b"".join(sound) + claiming(encode(keyed(40, "a")), 500))
    source = Source.of(str(path), 0, entry_of(LOCAL, str(path)))
    planned = stretch(source, 0, source.log_bytes)
    settings, out = settings_in(tmp_path, NOW_MS), str(tmp_path / "out")
    (failed,) = count_stretches([planned], settings, out, Buffers())
    assert not isinstance(failed, CountedRun) and isinstance(failed[1], CorruptFileError)
    assert failed[1].position == sum(map(len, sound))
