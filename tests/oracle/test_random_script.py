"""Random scripts: the same for the same seed, one clock at the end, holding what is asked for."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.random_script import END_MS, Operation, ScriptOptions, random_script

SEEDS = st.integers(0, 2**31)
PLAIN = ScriptOptions(topic="p", txn=False, legacy=False)


def appends(lines: list[Operation]) -> list[Operation]:
    return [line for line in lines if line["op"] == "append"]


@given(SEEDS)
def test_a_script_is_its_seeds_and_ends_at_the_clock_of_the_cleaning(seed: int) -> None:
    lines = random_script(seed, PLAIN)
    assert lines == random_script(seed, PLAIN)
    clocks = [line["ms"] for line in lines if line["op"] == "clock"]
    assert clocks == sorted(clocks)
    assert (lines[-1]["op"], clocks[-1]) == ("clock", END_MS)
    assert lines[0] == {"op": "partition", "topic": "p", "partition": 0}


@given(SEEDS)
def test_a_plain_log_has_no_transactions_and_no_old_messages(seed: int) -> None:
    lines = random_script(seed, PLAIN)
    assert not any(line["op"] == "end_txn" for line in lines)
    assert not any("txn" in line or "magic" in line for line in appends(lines))


def test_every_operation_turns_up_among_some_seeds() -> None:
    seen, codecs = Counter[str](), Counter[str]()
    for seed in range(60):
        lines = random_script(seed, PLAIN)
        seen.update(line["op"] for line in lines)
        codecs.update(line.get("codec", "none") for line in appends(lines))
    often = {"append", "clean", "roll", "snapshot", "log_start", "fill"}
    assert often | {"checkpoint", "high_watermark"} <= seen.keys()
    assert codecs.keys() == {"none", "gzip", "snappy", "lz4", "zstd"}
    whole = [line for seed in range(60) for line in random_script(seed)]
    assert {"end_txn"} <= {line["op"] for line in whole}
    assert {0, 1} <= {line["magic"] for line in appends(whole) if "magic" in line}
