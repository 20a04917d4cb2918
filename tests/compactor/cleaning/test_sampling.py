"""What a sample says would go of a log, held against what a dry run says of all of it."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleaner_jobs.messages import Part, Source, Stretch
from compactor import api
from compactor.cleaning import sampling
from compactor.cleaning.sampling import sample, shrinking_of
from compactor.planning.block_estimate import Blocks, clumping, estimate_of, unevenness, unseen_keys
from compactor.planning.expected import Estimate
from compactor.planning.round_plan import RoundPlan
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.compactor.plan_logs import plan_log_dirs, with_settings
from tests.support.made_log import batch, keyed, log_of, make_partition, record

LOGS = 12
NOW_MS = 10**12
SETTINGS = {"min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}


def random_log(root: Path, seed: int) -> RoundPlan:
    """A log of two segments and an active one: few keys or many, written alike or not."""
    chosen = random.Random(seed)
    records, keys = 6000, chosen.choice((50, 500, 2000, 5000, 20_000))
    is_skewed, length = chosen.random() < 0.4, chosen.choice((10, 60, 200))

    def key() -> bytes:
        number = chosen.random() ** (2 if is_skewed else 1) * keys
        return b"%d" % int(number)

    in_batch = chosen.choice((1, 7, 20))
    batches = [
        batch(
            *(
                record(offset, key(), bytes(chosen.randrange(length)))
                for offset in range(first, first + in_batch)
            )
        )
        for first in range(0, records, in_batch)
    ]
    half, end = len(batches) // 2, in_batch * len(batches)
    segments = {0: batches[:half], in_batch * half: batches[half:], end: [keyed(end, "a")]}
    make_partition(root / str(seed), segments, interval_bytes=512)
    return plan_log_dirs([str(root / str(seed))], with_settings(SETTINGS), NOW_MS)


def sampled(plan: RoundPlan, share: float) -> tuple[Estimate, float]:
    """What a sample says, and what goes by all of the log."""
    [log] = plan.logs
    whole = sample(plan, log)
    assert whole.least is not None and whole.is_exact
    return sample(plan, log, int(log.log_bytes * share)), whole.least


def test_the_actual_is_within_the_interval_of_nineteen_in_twenty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "BLOCK_BYTES", 2048)
    hits, told = 0, 0
    for seed in range(LOGS):
        found, actual = sampled(random_log(tmp_path, seed), 0.1 + 0.05 * (seed % 10))
        if found.least is not None and found.most is not None:
            told += 1
            hits += found.least <= actual <= found.most
    assert told >= LOGS / 2  # of small blocks: the few keys in one say less than those in a MiB
    assert hits == told  # of these seeds; of 200 at least 95 %


def test_a_log_that_fits_the_sample_is_known_to_the_byte(tmp_path: Path) -> None:
    """Two batches of 101 bytes, of which one of 81 and one that is gone stay."""
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "a")]}
    partition = make_partition(tmp_path / "d", segments)
    plan = plan_log_dirs([str(tmp_path / "d")], with_settings(SETTINGS), NOW_MS)
    found = sample(plan, plan.logs[0])
    assert found == Estimate(1 - 81 / 202, 1 - 81 / 202, 202)
    assert log_of(partition, 0).stat().st_size == 101  # nothing is written


def test_damage_is_told_and_no_number(tmp_path: Path) -> None:
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "a")]}
    path = log_of(make_partition(tmp_path / "d", segments), 4)
    data = bytearray(path.read_bytes())
    data[90] ^= 1
    path.write_bytes(data)
    plan = plan_log_dirs([str(tmp_path / "d")], with_settings(SETTINGS), NOW_MS)
    found = sample(plan, plan.logs[0])
    assert (found.least, "checksum" in str(found.problem)) == (None, True)


SAMPLE_BYTES = 18 << 20


@pytest.fixture(scope="module")
def three_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One is read whole, one is damaged, and of one some blocks are read."""
    root = tmp_path_factory.mktemp("logs")
    for name in ("orders-1", "orders-2"):
        segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "a")]}
        make_partition(root, segments, name)
    path = log_of(root / "orders-2", 4)
    data = bytearray(path.read_bytes())
    data[90] ^= 1
    path.write_bytes(data)
    batches = [batch(record(n, b"%d" % (n % 150), bytes(100_000))) for n in range(220)]
    make_partition(root, {0: batches, 220: [keyed(220, "a")]}, "orders-0")
    return root


RULES = api.Rules(
    include=".*",
    settings=SETTINGS | {"cleanup.policy": "compact"},
    as_of=NOW_MS,
    any_clock=True,
    assume_fully_replicated=True,
)


def estimates(root: Path, options: api.TaskOptions) -> dict[str, Estimate]:
    planned = api.plan(root, RULES, sample_bytes=SAMPLE_BYTES, options=options)
    assert planned.estimates is not None
    return {Path(path).name: estimate for path, estimate in planned.estimates.items()}


def test_processes_give_the_estimates_that_this_process_gives(three_logs: Path) -> None:
    expected = estimates(three_logs, api.TaskOptions(in_process=True))
    assert expected["orders-1"] == Estimate(1 - 81 / 202, 1 - 81 / 202, 202)
    assert "checksum" in str(expected["orders-2"].problem)
    of_blocks = expected["orders-0"]
    assert SAMPLE_BYTES / 2 < of_blocks.read_bytes <= SAMPLE_BYTES
    assert of_blocks.least is not None and of_blocks.most is not None
    assert of_blocks.least < of_blocks.most
    with api.Workers(2) as workers:
        assert estimates(three_logs, api.TaskOptions(workers=workers)) == expected


@pytest.mark.spark
def test_spark_gives_the_estimates_that_this_process_gives(three_logs: Path) -> None:
    expected = estimates(three_logs, api.TaskOptions(in_process=True))
    assert estimates(three_logs, api.TaskOptions(master="local[2]")) == expected


def blocks(**changed: Any) -> Blocks:
    """A tenth of 100,000 records of 100 bytes, 20,000 keys written alike.

    Of a key with five records on average 0.5 are in the sample: by Poisson 6065 are in one block,
    1516 in two, 253 in three, 32 in four, 3 in five, and one in six; 7870 are seen.
    """
    values: dict[str, Any] = {
        "share": 0.1,
        "log_bytes": 1_000_000,
        "batches": 100,
        "records": 10_000,
        "keyless": 0,
        "expired": 0,
        "keys": 7870,
        "in_blocks": (6065, 1516, 253, 32, 3, 1),
        "drawn": 100,
        "of_blocks": 1000,
        "clumped": 1.0,
    }
    return Blocks(**values | changed)


def test_keys_that_are_written_alike_are_estimated_well() -> None:
    """100,000 records of 20,000 keys: four fifths go."""
    found = estimate_of(blocks())
    assert found.least is not None and found.most is not None
    assert found.least < 0.8 < found.most
    assert found.most - found.least < 0.25


def test_what_was_tried_counts_where_less_goes_than_by_the_records() -> None:
    usual, tried = estimate_of(blocks()), estimate_of(blocks(), lambda share: share - 0.2)
    assert usual.least is not None and tried.least is not None
    assert 0.05 < usual.least - tried.least < 0.2
    assert tried.most == usual.most


def test_where_the_dearer_records_go_more_bytes_may_go_than_records() -> None:
    """A quarter dearer, or cheaper: 0.8 of the records are all of the bytes, or 0.64 of them."""
    dear, cheap = estimate_of(blocks(dearer=1.25)), estimate_of(blocks(dearer=0.8))
    usual = estimate_of(blocks())
    assert usual.most is not None and cheap.least is not None
    assert dear == usual._replace(most=1.0)
    assert cheap.most == usual.most
    assert usual.most < 0.9 and cheap.least < 0.64 - 0.08


def test_what_is_seen_to_go_is_weighed_by_its_blocks() -> None:
    """Of ten records two go in the block of 100 bytes, none in that of 300: 5 % of the bytes."""
    few, many = (part(number, log_bytes) for number, log_bytes in enumerate((100, 300)))
    keys = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.uint64)
    blocks_of = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    found = sampling._dearer([few, many], blocks_of, keys)
    assert found == pytest.approx((2 / 5 * 100 / 400) / (2 / 10))
    shared = np.array([1, 2, 3, 1, 5, 6, 7, 8], np.uint64)  # key 1 stays in its later block
    found = sampling._dearer([few, many], blocks_of, shared)
    assert found == pytest.approx((3 / 5 * 100 / 400) / (3 / 10))


def part(number: int, log_bytes: int) -> Part:
    """Of five records."""
    values = dict.fromkeys(Part._fields, 0) | {"file": "", "sections": ()}
    return Part(**values | {"group": number, "log_bytes": log_bytes, "records": 5})  # type: ignore[arg-type]


def test_what_cannot_be_told_is_said() -> None:
    rare = estimate_of(
        blocks(keys=99, in_blocks=(99, 0, 0), share=0.001, records=100, drawn=1, of_blocks=1000)
    )
    assert rare.problem == "too few keys came twice in the sample"
    none = estimate_of(blocks(keys=0))
    assert none.problem == "the sample has no records with keys"


@pytest.mark.parametrize("distance", [0, 1, 3, 40])
def test_how_far_apart_a_key_comes_again_makes_no_difference(distance: int) -> None:
    """Of 400 blocks 100 are drawn by lot; each key stands in two blocks, so far apart."""
    chance = random.Random(distance)
    first = [chance.randrange(400 - distance) for _ in range(20_000)]
    lots = [np.sort(chance.sample(range(400), 100)) for _ in range(100)]
    drawn = min(lots, key=lambda lot: unevenness(lot, 400)).tolist()
    number = {block: i for i, block in enumerate(drawn)}
    found = [
        (number[b], key) for key, at in enumerate(first) for b in {at, at + distance} & set(drawn)
    ]
    blocks, keys = np.array(found, np.int64).T
    times = Counter(Counter(keys.tolist()).values())
    clumped = clumping(blocks, keys.astype(np.uint64), 100)
    assert (clumped > 5) == (distance > 0)  # few pairs of blocks share all that any share
    unseen = unseen_keys([times[1], times[2], 0], 100, 400, clumped)
    assert unseen.least < 20_000 - times[1] - times[2] < unseen.most
    assert unseen.most - unseen.least < (0.7 if distance else 0.15) * len(first)


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
