"""The proof would notice what it is there to notice."""

from pathlib import Path

from demo.proof import Latest, LogContents, differences, files_in, read_log_dir
from tests.compactor.small_log import END_OFFSET, build


def contents(latest: Latest) -> dict[str, LogContents]:
    return {"t-0": LogContents(1, 10, 3, latest)}


BEFORE: Latest = {b"a": (1, b"x"), b"b": (2, b"y"), b"gone": (3, None)}


def changed(after: Latest) -> int:
    return differences(contents(BEFORE), contents(after))["t-0"]


def test_the_same_last_records_are_no_difference() -> None:
    assert changed(dict(BEFORE)) == 0


def test_a_tombstone_may_go() -> None:
    assert changed({b"a": (1, b"x"), b"b": (2, b"y")}) == 0


def test_every_other_change_is_one() -> None:
    assert changed({**BEFORE, b"a": (1, b"z")}) == 1
    assert changed({**BEFORE, b"a": (0, b"x")}) == 1
    assert changed({**BEFORE, b"new": (7, b"x")}) == 1
    assert changed({**BEFORE, b"gone": (1, b"back")}) == 1
    assert changed({b"b": (2, b"y")}) == 1
    assert changed({}) == 2


def test_a_log_that_has_gone_or_come_is_a_difference() -> None:
    assert differences(contents(BEFORE), {}) == {"t-0": -1}
    assert differences({}, contents(BEFORE)) == {"t-0": -1}


def test_what_a_reader_finds(tmp_path: Path) -> None:
    """The last of thirty records, whose keys are offsets modulo four; every seventh deletes."""
    build(tmp_path / "log")
    found = read_log_dir(str(tmp_path / "log"))["orders-0"]
    assert (found.segments, found.records) == (2, END_OFFSET)
    assert found.latest == {
        b"key-0": (28, b"value" * 10),
        b"key-1": (29, b"value" * 10),
        b"key-2": (26, b"value" * 10),
        b"key-3": (27, None),
    }


def test_files_are_the_same_if_every_byte_is_and_the_lock_does_not_count(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        (root / "orders-0").mkdir(parents=True)
        (root / "orders-0" / "0.log").write_bytes(b"abc")
    (other / ".lock").touch()
    assert files_in(str(one)) == files_in(str(other)) == {"orders-0/0.log": b"abc"}
    (other / "orders-0" / "0.log").write_bytes(b"abd")
    assert files_in(str(one)) != files_in(str(other))
