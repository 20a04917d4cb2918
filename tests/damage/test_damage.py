"""A sample of all damages; `make test-damage` tries every one.

Held: each damage of a log that Kafka wrote ends in a log that is set aside, with file and byte and
every byte as it was, or in what Kafka's own cleaner makes of it.
"""

from itertools import islice
from pathlib import Path

import pytest

from storage.codecs.compression import Codec, compress
from tests.damage import campaign
from tests.damage.damaged_logs import Case, all_sound, resized, sound_log
from tests.damage.endings import Ending, endings
from tests.support.local_round import LocalRound
from tests.support.reference_batch import HEADER, split

ONE_OF = 43  # prime, so that a sample meets every place of every field
FIRST = "00000000000000000000.log"


@pytest.mark.parametrize("kind", list(campaign.KINDS))
def test_no_damage_goes_unseen(kind: str, local: LocalRound, tmp_path: Path) -> None:
    cases = islice(campaign.KINDS[kind](), 0, None, ONE_OF)
    found = list(campaign.run(cases, local, tmp_path))
    assert [each for each in found if each.ending in campaign.WRONG] == []
    assert Ending.SET_ASIDE in {each.ending for each in found}


def test_every_byte_of_every_codec_and_format_is_among_them() -> None:
    cases = campaign.KINDS["a byte of a log"]()
    damaged = {(case.source, case.file, case.what.split()[1]) for case in cases}
    logs = [path for source in all_sound() for path in sound_log(source).before.glob("*.log")]
    assert len(damaged) == sum(path.stat().st_size for path in logs)
    batches = [raw for path in logs for raw in split(path.read_bytes())]
    formats = {(raw[16], raw[17] & 7 if raw[16] < 2 else raw[22] & 7) for raw in batches}
    legacy = {(magic, codec) for magic in (0, 1) for codec in range(4)}
    assert formats == legacy | {(2, codec) for codec in range(5)}


def test_a_sound_log_becomes_what_kafka_makes_of_it(local: LocalRound, tmp_path: Path) -> None:
    cases = [Case(source, FIRST, "nothing", lambda data: data) for source in all_sound()]
    found = endings(cases, local, tmp_path / "logs")
    assert {each.ending for each in found} == {Ending.AS_KAFKA}


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_sets_its_log_aside(codec: Codec, local: LocalRound, tmp_path: Path) -> None:
    """12 KB of zstd hold 400 MB: more than a task has room for."""
    source = f"e23-first-dropped-{codec.name.lower()}-0"

    def blown_up(data: bytes) -> bytes:
        first, *others = split(data)
        return resized(first[: HEADER.size] + compress(codec, bytes(400 << 20))) + b"".join(others)

    (found,) = endings([Case(source, FIRST, "bomb", blown_up)], local, tmp_path / "logs")
    assert found.ending is Ending.SET_ASIDE
    assert found.told.endswith(
        f"{FIRST}, byte 0: the batch decompresses to more than 268435456 bytes"
    )
