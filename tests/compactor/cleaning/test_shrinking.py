"""How much smaller batches get when records go from them: against batches written without these."""

from pathlib import Path

import pytest

from cleaner_jobs.messages import Source, Stretch
from compactor.cleaning.shrinking import shrinking_of
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch


def stretch(path: Path, data: bytes) -> Stretch:
    path.write_bytes(data)
    source = Source(str(path), 0, len(data), 0, 0, 0, 0)
    return Stretch(0, 0, 0, 0, len(data), source, 0, 100, 0)


def records(keys: str) -> list[Record]:
    """Values of a hundred bytes that hardly compress, the same ones for the same key."""
    return [
        Record(at, 1, key.encode(), bytes(at_ * ord(key) % 251 for at_ in range(100)))
        for at, key in enumerate(keys)
    ]


def test_of_keys_that_come_again_the_last_records_are_left(tmp_path: Path) -> None:
    """Six of eight go: three quarters of the records, and hardly any of the compressed bytes."""
    written = records("abababab")
    whole, left = (encode_batch(part, Codec.GZIP) for part in (written, written[6:]))
    found = shrinking_of([stretch(tmp_path / "log", whole)], LOCAL)
    share = found.bytes_share(0.75)
    assert share == pytest.approx(1 - len(left) / len(whole), abs=0.01)
    assert share is not None and share < 0.3


def test_what_goes_beyond_these_is_any(tmp_path: Path) -> None:
    """Of keys that all differ, half go of what is not compressed: half of the bytes, but for the
    headers of the batches."""
    batch = encode_batch(records("abcdefghijklmnopqrstuvwxyz" * 8)[:26])
    stretches = [stretch(tmp_path / str(number), batch) for number in range(40)]
    share = shrinking_of(stretches, LOCAL).bytes_share(0.5)
    assert share == pytest.approx(0.5 * (1 - 61 / len(batch)), abs=0.04)


def test_a_smaller_share_than_what_comes_again_goes_in_proportion(tmp_path: Path) -> None:
    found = shrinking_of([stretch(tmp_path / "log", encode_batch(records("aaaabbbb")))], LOCAL)
    of_six, of_three = found.bytes_share(0.75), found.bytes_share(0.375)
    assert of_six is not None
    assert of_three == pytest.approx(of_six / 2)


def test_all_may_go(tmp_path: Path) -> None:
    found = shrinking_of(
        [stretch(tmp_path / "log", encode_batch(records("abcd"), Codec.LZ4))], LOCAL
    )
    assert found.bytes_share(1.0) == 1.0


def test_where_there_is_no_batch_of_the_format_nothing_is_known() -> None:
    assert shrinking_of([], LOCAL).bytes_share(0.5) is None


def test_damage_is_told(tmp_path: Path) -> None:
    data = bytearray(encode_batch(records("ab")))
    data[70] ^= 1
    with pytest.raises(CorruptFileError, match="CRC"):
        shrinking_of([stretch(tmp_path / "log", bytes(data))], LOCAL)
