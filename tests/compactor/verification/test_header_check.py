"""Headers of batches that no cleaning would write are found; the true ones are laid out by hand.

What a batch becomes stands in compaction C-11.6 to C-11.12; which marker gets a delete horizon, in
C-8.5. A horizon that is set too early lets a tombstone go at the next round.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.command_line import cli
from compactor.verification.evidence import CleaningClock
from storage.codecs.compression import Codec
from storage.file_names import LOG, file_name
from storage.formats import checkpoint
from storage.formats.record import Record
from tests.compactor.verification.test_verify_against import Pair, emptied, left
from tests.support.legacy_writer import encode_message
from tests.support.made_log import (
    COMMIT_KEY,
    NOW_MS,
    TXN,
    batch,
    make_partition,
    marker,
    of_producer,
    packed,
    record,
    write_segment,
)
from tests.support.reference_batch import (
    HORIZON,
    LOG_APPEND_TIME,
    ReferenceBatch,
    ReferenceRecord,
    encode,
    encode_parts,
)

Batches = dict[str, bytes]
RETENTION_MS = 500
SET_MS = NOW_MS + RETENTION_MS  # what this cleaning gives
OLD_MS = NOW_MS + 7  # what an earlier one gave
CLEANED_TO = 40
BY_REPORT = CleaningClock(NOW_MS, True, {("orders", 0): RETENTION_MS})
CLOCKS = {
    "nothing": CleaningClock(NOW_MS + 10**6),
    "as of": CleaningClock(NOW_MS, is_exact=True),
    "report": BY_REPORT,
}


def at(offset: int, key: str, timestamp: int, value: bytes | None = b"v") -> ReferenceRecord:
    return record(offset, key.encode(), value, timestamp)


LOSES_LATEST = batch(at(0, "a", 900), at(1, "b", 300), at(2, "c", 200))
WITH_TOMBSTONE = batch(at(3, "d", 400), at(4, "e", 500, None))
HAD_HORIZON = replace(
    batch(at(5, "f", 600, None), at(6, "g", 650)), attributes=HORIZON, base_timestamp=OLD_MS
)
STAMPED = replace(batch(at(7, "h", 700), at(8, "a", 700)), attributes=LOG_APPEND_TIME)
EMPTIED = of_producer(batch(at(9, "a", 800)), 5, 0)
LONE_MARKER = of_producer(batch(record(10, COMMIT_KEY, b"\0" * 6, 810)), 6, TXN | 0x20)
COPIED = batch(at(11, "i", 820))
EXPIRED = replace(batch(at(12, "j", 5, None)), attributes=HORIZON, base_timestamp=NOW_MS - 3)
DATA = of_producer(batch(at(13, "k", 830)), 7)
COMMIT = marker(14, 7, COMMIT_KEY)
MESSAGE = encode_message(1, Record(15, 840, b"l", None))
STAMPED_MESSAGE = encode_message(1, Record(16, 850, b"m", b"v"), LOG_APPEND_TIME)
LAST = batch(at(20, "a", 860))


def with_horizon(made: ReferenceBatch, horizon_ms: int) -> ReferenceBatch:
    return replace(made, attributes=made.attributes | HORIZON, base_timestamp=horizon_ms)


def before() -> Batches:
    return {
        "loses latest": encode(LOSES_LATEST),
        "with tombstone": encode(WITH_TOMBSTONE),
        "had horizon": encode(HAD_HORIZON),
        "stamped": packed(STAMPED, Codec.GZIP),
        "emptied": encode(EMPTIED),
        "lone marker": encode(LONE_MARKER),
        "copied": encode(COPIED),
        "expired": encode(EXPIRED),
        "data": encode(DATA),
        "commit": COMMIT,
        "message": MESSAGE,
        "stamped message": STAMPED_MESSAGE,
        "last": encode(LAST),
    }


CONVERTED = with_horizon(batch(at(15, "l", 840, None)), SET_MS)
CONVERTED = replace(CONVERTED, leader_epoch=-1)
CONVERTED_STAMPED = replace(batch(at(16, "m", 850)), attributes=LOG_APPEND_TIME, leader_epoch=-1)
REBUILT = left(LOSES_LATEST, 1)
assert (REBUILT.max_timestamp, REBUILT.base_timestamp) == (300, 300)


def after() -> Batches:
    """What becomes of them; only what is named here is another."""
    kept = left(STAMPED, 0, 1)
    return before() | {
        "loses latest": encode(REBUILT),
        "with tombstone": encode(with_horizon(WITH_TOMBSTONE, SET_MS)),
        "stamped": packed(kept, Codec.GZIP),
        "emptied": emptied(EMPTIED),
        "lone marker": encode(with_horizon(LONE_MARKER, SET_MS)),
        "expired": b"",
        "message": encode(CONVERTED),
        "stamped message": encode(CONVERTED_STAMPED),
    }


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path / "before", tmp_path / "after")
    for root, batches in zip(pair, (before(), after()), strict=True):
        partition = make_partition(root, {0: [], CLEANED_TO: [batch(at(CLEANED_TO, "z", 900))]})
        write(partition, batches)
        checkpoint.write(str(root / checkpoint.REPLICATION), {("orders", 0): CLEANED_TO + 1})
    checkpoint.write(str(pair.new / checkpoint.CLEANER_OFFSET), {("orders", 0): CLEANED_TO})
    return pair


def write(partition: Path, batches: Batches) -> None:
    write_segment(partition, 0, [])
    (partition / file_name(0, LOG)).write_bytes(b"".join(batches.values()))


def told(pair: Pair, clock: CleaningClock) -> list[str]:
    return [finding.problem for finding in pair.hold(clock).findings]


@pytest.mark.parametrize("clock", CLOCKS)
def test_what_the_rules_give_is_no_finding(pair: Pair, clock: str) -> None:
    found = pair.hold(CLOCKS[clock])
    assert [str(finding) for finding in found.findings] == []
    [held] = found.partitions
    assert {reason: n for reason, n in held.gone.items() if n} == {"superseded": 3, "tombstone": 1}


def put(name: str, made: bytes | ReferenceBatch) -> Callable[[Batches], None]:
    def lie(batches: Batches) -> None:
        batches[name] = made if isinstance(made, bytes) else encode(made)

    return lie


def changed(name: str, made: ReferenceBatch, **fields: int) -> Callable[[Batches], None]:
    return put(name, replace(made, **fields))  # type: ignore[arg-type]


NO_REASON = "has a delete horizon, but no tombstone, and is no marker that needs one"
LIES: dict[str, tuple[Callable[[Batches], None], str]] = {
    "largest time of a rebuilt batch too large": (
        changed("loses latest", REBUILT, max_timestamp=900),
        "offset 0: the batch has max timestamp 900, expected 300",
    ),
    "largest time of a rebuilt batch too small": (
        changed("loses latest", REBUILT, max_timestamp=200),
        "offset 0: the batch has max timestamp 200, expected 300",
    ),
    "largest time of a copied batch": (
        changed("copied", COPIED, max_timestamp=821),
        "offset 11: the batch has max timestamp 821, expected 820",
    ),
    "largest time of an emptied batch": (
        put("emptied", emptied(replace(EMPTIED, max_timestamp=-1))),
        "offset 9: the batch has max timestamp -1, expected 800",
    ),
    "largest time of a converted message": (
        changed("message", CONVERTED, max_timestamp=841),
        "offset 15: the batch has max timestamp 841, expected 840",
    ),
    "base time": (
        changed("loses latest", REBUILT, base_timestamp=299),
        "offset 0: the batch has base timestamp 299, expected 300",
    ),
    "a horizon is lost": (
        changed("had horizon", HAD_HORIZON, attributes=0, base_timestamp=600),
        f"offset 5: the batch has lost its delete horizon {OLD_MS}",
    ),
    "a horizon is moved": (
        changed("had horizon", HAD_HORIZON, base_timestamp=OLD_MS - 1),
        f"offset 5: the batch has delete horizon {OLD_MS - 1}, before {OLD_MS}",
    ),
    "a horizon without a tombstone": (
        put("copied", with_horizon(COPIED, SET_MS)),
        f"offset 11: the batch {NO_REASON}",
    ),
    "a horizon of a marker whose data is there": (
        put("commit", marker(14, 7, COMMIT_KEY, SET_MS)),
        f"offset 14: the batch {NO_REASON}",
    ),
    "a horizon of an emptied batch": (
        put("emptied", replace(EMPTIED, records=(), attributes=HORIZON, base_timestamp=SET_MS)),
        "offset 9: the batch has attributes 64, expected 0",
    ),
    "another codec": (
        put("stamped", left(STAMPED, 0, 1)),
        "offset 7: the batch has attributes 8, expected 9",
    ),
    "an attribute that Kafka does not know": (
        changed("copied", COPIED, attributes=0x80),
        "offset 11: the batch has attributes 128, expected 0",
    ),
    "a codec where there was none": (
        put("stamped message", packed(CONVERTED_STAMPED, Codec.GZIP)),
        "offset 16: the batch has attributes 9, expected 8",
    ),
    "a span of a converted message": (
        changed("stamped message", CONVERTED_STAMPED, last_offset=17),
        "offset 16: there was no such batch before",
    ),
    "one tombstone has none": (
        put("with tombstone", WITH_TOMBSTONE),
        "offset 3: the batch has no delete horizon, but needs one: it has a tombstone, or is a "
        "marker whose transaction has no data any more",
    ),
    "a marker has none": (
        put("lone marker", LONE_MARKER),
        "offset 10: the batch has no delete horizon, but needs one: it has a tombstone, or is a "
        "marker whose transaction has no data any more",
    ),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", LIES)
def test_a_header_that_no_cleaning_writes_is_found(pair: Pair, name: str, clock: str) -> None:
    lie, expected = LIES[name]
    batches = after()
    lie(batches)
    write(pair.new / "orders-0", batches)
    found = told(pair, CLOCKS[clock])
    assert any(problem.startswith(expected) for problem in found), found


@pytest.mark.parametrize("clock", CLOCKS)
def test_horizons_of_two_moments_are_those_of_two_cleanings(pair: Pair, clock: str) -> None:
    """One may have been interrupted. Nothing is lost; only a report says which moments it were."""
    second = with_horizon(WITH_TOMBSTONE, SET_MS + 1)
    write(pair.new / "orders-0", after() | {"with tombstone": encode(second)})
    found = pair.hold(CLOCKS[clock])
    assert [p.horizon_moments for p in found.partitions] == [2]
    expected = [f"offset 3: delete horizon {SET_MS + 1}, the cleaning set {SET_MS}"]
    assert [f.problem for f in found.findings] == (expected if clock == "report" else [])


def test_a_batch_that_is_packed_otherwise_is_found(pair: Pair) -> None:
    """The same records under the same header, but for length and checksum."""
    raw = encode(COPIED)
    loose = raw[:-1] + b"\x80\x00"  # no headers, in two bytes; the record is one byte longer
    body = bytearray(loose[61:])
    body[0] += 2
    write(pair.new / "orders-0", after() | {"copied": encode_parts(COPIED, bytes(body))})
    problem = "offset 11: the batch was rebuilt, though nothing in it had to change"
    assert problem in told(pair, BY_REPORT)


def all_at(horizon_ms: int) -> Batches:
    return after() | {
        "with tombstone": encode(with_horizon(WITH_TOMBSTONE, horizon_ms)),
        "lone marker": encode(with_horizon(LONE_MARKER, horizon_ms)),
        "message": encode(with_horizon(CONVERTED, horizon_ms)),
    }


@pytest.mark.parametrize(
    ("horizon_ms", "finders"),
    [
        (SET_MS, set()),
        (SET_MS - 1, {"report"}),
        (SET_MS + 1, {"report"}),
        (NOW_MS, {"report"}),
        (NOW_MS - 1, {"as of", "report"}),
        (NOW_MS - 4, {"nothing", "as of", "report"}),  # one from NOW_MS - 3 was reached
        (0, {"nothing", "as of", "report"}),
    ],
)
def test_a_moment_for_all_is_held_to_what_is_known(
    pair: Pair, horizon_ms: int, finders: set[str]
) -> None:
    write(pair.new / "orders-0", all_at(horizon_ms))
    found = {name for name, clock in CLOCKS.items() if told(pair, clock)}
    assert found == finders


def without_horizons() -> Batches:
    return after() | {
        "with tombstone": encode(WITH_TOMBSTONE),
        "lone marker": encode(LONE_MARKER),
        "message": encode(replace(CONVERTED, attributes=0, base_timestamp=840)),
    }


@pytest.mark.parametrize(
    ("retention_ms", "is_found"), [(RETENTION_MS, True), (2**63 - 1, False), (None, False)]
)
def test_a_retention_without_end_sets_none(
    pair: Pair, retention_ms: int | None, is_found: bool
) -> None:
    """C-11.8. Who does not know the retention cannot tell."""
    write(pair.new / "orders-0", without_horizons())
    known = {} if retention_ms is None else {("orders", 0): retention_ms}
    clock = CleaningClock(NOW_MS, True, known)
    assert bool(told(pair, clock)) is is_found


def test_a_cleaning_that_was_cut_short_may_have_left_batches_as_they_were(pair: Pair) -> None:
    write(pair.new / "orders-0", after() | {"with tombstone": encode(WITH_TOMBSTONE)})
    (pair.new / checkpoint.CLEANER_OFFSET).unlink()
    assert told(pair, BY_REPORT) == []


class TestRunReport:
    def report(self, root: Path, **changed: object) -> Path:
        log = {"topic": "orders", "partition": 0, "delete_retention_ms": RETENTION_MS}
        other = {"topic": "else", "partition": 1, "delete_retention_ms": None}
        document = {
            "command": "run",
            "dry_run": False,
            "as_of_ms": NOW_MS,
            "logs": [log, other],
            **changed,
        }
        path = root / "report.json"
        path.write_text(json.dumps(document))
        return path

    def verify(self, pair: Pair, *words: object) -> int:
        return cli.main(["verify", str(pair.new), "--against", str(pair.old), *map(str, words)])

    def test_it_tells_the_moment(
        self, pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for horizon_ms in (SET_MS, SET_MS - 1):
            write(pair.new / "orders-0", all_at(horizon_ms))
            self.verify(pair, "--run-report", self.report(tmp_path))
            out = capsys.readouterr().out
            assert (f"delete horizon {horizon_ms}, the cleaning set" in out) is (
                horizon_ms != SET_MS
            )

    @pytest.mark.parametrize(
        "changed", [{"dry_run": True}, {"command": "plan"}, {"logs": None}, {"as_of_ms": "x"}]
    )
    def test_another_file_is_refused(
        self,
        pair: Pair,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        changed: dict[str, object],
    ) -> None:
        path = self.report(tmp_path, **changed)
        assert self.verify(pair, "--run-report", path) == 2
        assert f"--run-report {path}: is not a report of a run" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "words", [["--run-report", "none.json"], ["--run-report", "x", "--as-of", "5"]]
    )
    def test_what_does_not_go_together_is_refused(self, pair: Pair, words: list[str]) -> None:
        assert self.verify(pair, *words) == 2
