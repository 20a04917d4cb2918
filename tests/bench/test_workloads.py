"""The measured logs are what docs/benchmarks.md says they are."""

from dataclasses import replace

from tests.bench.__main__ import CASES
from tests.bench.workloads import (
    FEW_SEGMENTS,
    FEWER_KEYS,
    GROWTH_LONG,
    GROWTH_SHORT,
    MANY_KEYS,
    MANY_SEGMENTS,
    NAMES,
    WORKLOADS,
    Fleet,
    ManyLogs,
    choose,
)

KAFKAS_MAP_KEYS = int(
    128 * 1024 * 1024 / 24 * 0.9
)  # C-7: default buffer, 24 bytes a key, 90 % full
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def test_each_has_a_name_of_its_own_and_a_place_in_the_matrix() -> None:
    assert sorted(NAMES) == sorted({*BY_NAME, *CASES})
    matrix = {(w.value_bytes, w.codec) for w in WORKLOADS if w.magic == 2}
    assert matrix == {(v, c) for v in (100, 1000) for c in ("none", "lz4", "zstd")}
    assert (Fleet().partitions, Fleet().segments) == (10_000, 60_000)
    assert (ManyLogs().logs, ManyLogs().quick().logs) == (2_000, 10)


def test_pairs_differ_in_one_thing_alone() -> None:
    short, long = BY_NAME[GROWTH_SHORT], BY_NAME[GROWTH_LONG]
    assert (long.batches, long.keys) == (5 * short.batches, 5 * short.keys)
    assert replace(short, name=long.name, batches=long.batches, keys=long.keys) == long
    few, many = BY_NAME[FEW_SEGMENTS], BY_NAME[MANY_SEGMENTS]
    assert replace(many, name=few.name, segment_bytes=1000 * many.segment_bytes) == few
    assert few.quick().segment_bytes > 2 * many.quick().segment_bytes
    fewer = BY_NAME[FEWER_KEYS]  # measured without a cold run
    third = {"batches": 300_000, "keys": 20_000_000, "sides": fewer.sides}
    assert replace(BY_NAME[MANY_KEYS], name=FEWER_KEYS, **third) == fewer  # type: ignore[arg-type]


def test_logs_that_kafka_takes_in_many_rounds_are_measured_only_if_asked_for() -> None:
    beyond = [workload.name for workload in WORKLOADS if workload.keys > KAFKAS_MAP_KEYS]
    assert beyond == [FEWER_KEYS, MANY_KEYS]
    unasked = [workload.name for workload in choose(None, quick=False)]
    assert sorted([*unasked, *beyond]) == sorted(BY_NAME)
    assert [w.name for w in choose([MANY_KEYS], quick=False)] == [MANY_KEYS]
    assert [w.name for w in choose(None, quick=True)] == list(BY_NAME)
    assert [w.name for w in choose(["100b-zstd", "small"], quick=False)] == ["small", "100b-zstd"]
