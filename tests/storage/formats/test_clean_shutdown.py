"""The marker of a clean shutdown, spec F-15.2. The bytes in KAFKAS were written by Kafka 4.3.1."""

from pathlib import Path

import pytest

from storage.formats import clean_shutdown
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN, decode, encode

KAFKAS = b'{"version":0,"brokerEpoch":-1}'


def test_the_marker_is_kafkas() -> None:
    assert encode() == KAFKAS
    assert encode(12) == b'{"version":0,"brokerEpoch":12}'
    assert decode(KAFKAS) is None
    assert decode(b'{"version":0,"brokerEpoch":12}') == 12


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"version":0}', b'{"brokerEpoch":"x"}', b"\xff"]
)
def test_a_marker_with_nothing_to_read_is_a_marker(data: bytes, tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN).write_bytes(data)
    assert clean_shutdown.exists(str(tmp_path))
    assert clean_shutdown.read(str(tmp_path)) is None


def test_a_marker_is_written_and_read(tmp_path: Path) -> None:
    assert not clean_shutdown.exists(str(tmp_path))
    assert clean_shutdown.read(str(tmp_path)) is None
    clean_shutdown.write(str(tmp_path), 5)
    assert clean_shutdown.exists(str(tmp_path))
    assert clean_shutdown.read(str(tmp_path)) == 5
