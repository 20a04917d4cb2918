"""The kernel that counts a run of batches, between fences and beside plain counting."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cleaner_jobs.inspection_counters import (
    BATCH_CELL,
    BATCHES_AT,
    CODECS,
    HORIZONS,
    NULL_KEYS,
    RECORDS,
    SECTIONS,
    TOMBSTONE_CELL,
    TOMBSTONES_AT,
    CountedRun,
)
from cleaner_jobs.kernels.record_counts import count_run
from cleaner_jobs.kernels.scan_runs import LEFT, NO_MORE, NOT_TAKEN, PART_FULL
from cleaner_jobs.messages import Source
from cleaner_jobs.tasks import inspection, window_reader
from cleaner_jobs.tasks.inspection import count_stretches
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.files.files import entry_of
from storage.files.local import LOCAL
from storage.formats.batch_header import RECORDS_COUNT_AT
from tests.bounds.cases import ExactBuffers
from tests.bounds.guarded import Fences
from tests.support.local_round import settings_in
from tests.support.made_log import NOW_MS, keyed, packed
from tests.support.made_values import stretch
from tests.support.reference_batch import encode, sealed

SEEDS = 60
CELLS_OF_V2 = BATCHES_AT + 2 * CODECS * BATCH_CELL


class Counted:
    """What stands in the batches, counted as they are made."""

    def __init__(self, chance: Random) -> None:
        self.raws: list[bytes] = []
        self.cells = np.zeros((CODECS, BATCH_CELL), np.int64)  # batches, bytes, records
        self.records = self.tombstones = self.null_keys = 0
        for _ in range(chance.randrange(1, 30)):
            if not self.raws or chance.random() < 0.2:  # they come in runs
                codec = chance.choice((*[Codec.NONE] * 4, *Codec))
            keys = "".join(chance.choice("abcD.") for _ in range(chance.randrange(1, 9)))
            made = keyed(self.records, keys)
            self.raws.append(encode(made) if codec is Codec.NONE else packed(made, codec))
            self.cells[codec] += 1, len(self.raws[-1]), len(keys)
            self.records += len(keys)
            self.tombstones += keys.count("D")
            self.null_keys += keys.count(".")


def claiming(raw: bytes, count: int) -> bytes:
    """A batch that says of itself, under a right checksum, that it has so many records."""
    behind = RECORDS_COUNT_AT + 4
    return sealed(raw[:RECORDS_COUNT_AT] + count.to_bytes(4, "big") + raw[behind:])


class Fenced:
    """In the place of the kernel: calls it between fences, and keeps why each run ended."""

    def __init__(self, chance: Random) -> None:
        self._fences = Fences(chance)
        self.ended: dict[int, int] = {}  # by reason, how many batches were done

    def __call__(self, *arguments: Any) -> Any:
        found = self._fences.call(count_run, arguments)
        self.ended[found[3]] = self.ended.get(found[3], 0) + found[0]
        return found


@pytest.fixture
def fenced(monkeypatch: pytest.MonkeyPatch) -> Fenced:
    """No buffer has more room than what is asked for, and little is."""
    kernel = Fenced(Random(1))
    monkeypatch.setattr(inspection, "count_run", kernel)
    monkeypatch.setattr(inspection, "RUN_RECORDS", 40)
    monkeypatch.setattr(window_reader, "CHUNK_PAYLOAD_BYTES", 300)
    monkeypatch.setattr(window_reader, "CHUNK_BYTES", 700)
    monkeypatch.setattr(window_reader, "RUN_BATCHES", 5)
    return kernel


def counted(tmp_path: Path, raws: list[bytes]) -> list[CountedRun | tuple[int, Exception]]:
    tmp_path.mkdir()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(raws))
    source = Source.of(str(path), 0, entry_of(LOCAL, str(path)))
    planned = stretch(source, 0, source.log_bytes)
    settings = settings_in(tmp_path / "work", NOW_MS)
    return list(count_stretches([planned], settings, str(tmp_path / "out"), ExactBuffers()))


def test_what_is_counted_between_fences_is_what_stands_there(
    tmp_path: Path, fenced: Fenced
) -> None:
    for seed in range(SEEDS):
        made = Counted(Random(seed))
        runs = counted(tmp_path / str(seed), made.raws)
        sums = np.sum([run.counters for run in runs if isinstance(run, CountedRun)], axis=0)
        cells = sums[CELLS_OF_V2:][: CODECS * BATCH_CELL].reshape(CODECS, BATCH_CELL)
        assert np.array_equal(cells, made.cells)
        assert (sums[RECORDS], sums[NULL_KEYS]) == (made.records, made.null_keys)
        tombstones = sums[TOMBSTONES_AT:][: SECTIONS * HORIZONS * TOMBSTONE_CELL]
        assert tombstones[::TOMBSTONE_CELL].sum() == made.tombstones
    assert {NO_MORE, PART_FULL, NOT_TAKEN} <= set(fenced.ended)
    assert fenced.ended[NO_MORE] > SEEDS


def test_a_lie_among_sound_batches_breaks_no_fence_and_is_named(
    tmp_path: Path, fenced: Fenced
) -> None:
    """More records than there is room for, and more than there are; wherever the batch stands."""
    for seed in range(4 * SEEDS):
        chance = Random(seed)
        raws = Counted(chance).raws
        at = chance.randrange(len(raws))
        there = int.from_bytes(raws[at][RECORDS_COUNT_AT : RECORDS_COUNT_AT + 4], "big")
        more = chance.choice((1, there // 2 + 1, there, 30, 500, 2**31 - 1 - there))
        raws[at] = claiming(raws[at], there + more)
        *_, failed = counted(tmp_path / str(seed), raws)
        assert not isinstance(failed, CountedRun) and isinstance(failed[1], CorruptFileError)
        assert failed[1].position == sum(map(len, raws[:at]))
    assert {LEFT, NOT_TAKEN} <= set(fenced.ended)
