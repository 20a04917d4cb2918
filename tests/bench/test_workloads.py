"""The measured logs are what docs/benchmarks.md says they are."""

import json
from dataclasses import replace

import pytest

from tests.bench.workloads import (
    FEW_SEGMENTS,
    FEWER_KEYS,
    GROWTH_LONG,
    GROWTH_SHORT,
    MAIN,
    MANY_KEYS,
    MANY_SEGMENTS,
    NAMES,
    SMALL,
    WORKLOADS,
    Fleet,
    ManyLogs,
    Workload,
    choose,
)

KAFKAS_MAP_KEYS = int(
    128 * 1024 * 1024 / 24 * 0.9
)  # C-7: default buffer, 24 bytes a key, 90 % full
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(WORKLOADS) + 8


def test_the_main_log_is_the_one_in_the_oracles_readme() -> None:
    lines = [json.loads(line) for line in BY_NAME[MAIN].script().splitlines()]
    assert lines == [
        {"op": "config", "segment.bytes": "134217728"},
        {
            "op": "fill", "batches": 60000, "records": 110, "keys": 1500000, "value_bytes": 100,
            "codec": "none", "entropy": 1.0, "tombstones": 0.05, "skew": 1, "seed": 3,
        },
        {"op": "roll"},
        {"op": "append", "records": [{"k": "a", "v": "z"}]},
    ]  # fmt: skip


def test_every_width_of_values_is_there_with_every_codec() -> None:
    matrix = {(w.value_bytes, w.codec) for w in WORKLOADS if w.magic == 2}
    assert matrix == {(v, c) for v in (100, 1000) for c in ("none", "lz4", "zstd")}


def test_the_growth_pair_differs_in_length_alone() -> None:
    short, long = BY_NAME[GROWTH_SHORT], BY_NAME[GROWTH_LONG]
    assert (long.batches, long.keys) == (5 * short.batches, 5 * short.keys)
    assert {long.script().replace("315000", "63000").replace("4500000", "900000")} == {
        short.script()
    }


def test_kafka_takes_every_log_but_two_in_one_round() -> None:
    beyond = [workload.name for workload in WORKLOADS if workload.keys > KAFKAS_MAP_KEYS]
    assert beyond == [FEWER_KEYS, MANY_KEYS]


def test_the_segments_differ_in_number_alone() -> None:
    few, many = BY_NAME[FEW_SEGMENTS], BY_NAME[MANY_SEGMENTS]
    assert few.segment_bytes == 1000 * many.segment_bytes
    assert many.script().replace("600000", "600000000") == few.script()
    assert few.quick().segment_bytes > 2 * many.quick().segment_bytes


def test_a_log_of_twelve_gigabytes_is_measured_if_it_is_asked_for() -> None:
    assert MANY_KEYS not in [workload.name for workload in choose(None, quick=False)]
    assert [w.name for w in choose([MANY_KEYS], quick=False)] == [MANY_KEYS]
    assert MANY_KEYS in [workload.name for workload in choose(None, quick=True)]
    records = BY_NAME[MANY_KEYS].batches * BY_NAME[MANY_KEYS].records_a_batch
    assert (records, BY_NAME[MANY_KEYS].keys) == (99_000_000, 60_000_000)


def test_the_log_that_its_growth_is_held_against_is_a_third_of_it() -> None:
    others = BY_NAME[FEWER_KEYS].sides  # it is measured without a cold run
    third = replace(
        BY_NAME[MANY_KEYS], name=FEWER_KEYS, batches=300_000, keys=20_000_000, sides=others
    )
    assert BY_NAME[FEWER_KEYS] == third


def test_many_logs_are_two_thousand() -> None:
    assert (ManyLogs().logs, ManyLogs().quick().logs) == (2_000, 10)


def test_another_script_is_another_log() -> None:
    log = Workload("x", 10, 10, 10, 100)
    others = [Workload("x", 10, 10, 10, 101), Workload("y", 10, 10, 10, 100)]
    assert log.key() == Workload("x", 10, 10, 10, 100).key()
    assert len({log.key(), *(other.key() for other in others)}) == 3


def test_quick_logs_are_small_and_of_the_same_shape() -> None:
    for workload in choose(None, quick=True):
        whole = BY_NAME[workload.name]
        assert workload.batches * workload.records_a_batch * workload.value_bytes < 50_000_000
        assert (workload.codec, workload.sides) == (whole.codec, whole.sides)
        assert workload.keys / workload.batches == pytest.approx(whole.keys / whole.batches)
        assert (workload.key() == whole.key()) == (whole.name == SMALL)


def test_logs_are_chosen_by_name_and_keep_their_order() -> None:
    assert [w.name for w in choose(["100b-zstd", "small"], quick=False)] == ["small", "100b-zstd"]
    assert len(choose(None, quick=False)) == len(WORKLOADS) - 2


def test_the_fleet_has_ten_thousand_logs_of_sixty_thousand_segments() -> None:
    assert (Fleet().partitions, Fleet().segments) == (10_000, 60_000)
    assert Fleet().quick().segments < 1000
