"""A log that uses up the offsets is set aside by every command, alone, with file and byte."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.command_line import cli
from storage.file_names import LOG, SNAPSHOT, file_name
from storage.formats import clean_shutdown
from storage.formats.record import Record
from tests.compactor.log_dirs.test_set_aside_memory import Compactor, compactor
from tests.compactor.originals.test_undo import Kept, merged
from tests.support.legacy_writer import encode_message
from tests.support.local_round import LocalRound
from tests.support.made_log import batch, files_of, keyed, log_of, make_partition, record
from tests.support.reference_batch import ReferenceBatch, encode

__all__ = ["compactor"]  # a fixture

REPLICATED = "--assume-fully-replicated"  # these logs have no high watermark
HIGHEST = 2**63 - 1
FIRST = HIGHEST - 9
CLOSED, ACTIVE = FIRST + 2, FIRST + 4  # no offset is missing between the segments
AT = 70  # of the second of two batches of one record
NO_NEXT = "no offset can follow it"


def lone(offset: int, key: bytes, last_offset: int | None = None) -> ReferenceBatch:
    return batch(record(offset, key, timestamp=100), last_offset=last_offset)


def write(root: Path, name: str, active: list[bytes], closed: list[bytes] | None = None) -> Path:
    """Three segments up to the highest offsets; where `closed` is given, it is the second one."""
    first = [lone(FIRST, b"a"), lone(FIRST + 1, b"b")]
    second = closed or [encode(lone(CLOSED, b"a")), encode(lone(CLOSED + 1, b"b"))]
    at = HIGHEST if closed else ACTIVE
    path = make_partition(root, {FIRST: first, CLOSED: second, at: active}, name)
    for snapshot in path.glob(f"*{SNAPSHOT}"):
        snapshot.unlink()
    return path


def two(last: bytes) -> list[bytes]:
    return [encode(lone(ACTIVE, b"a")), last]


def behind_a_message(partition: Path) -> Path:
    """With a message of format v1 at the end."""
    with log_of(partition, ACTIVE).open("ab") as log:
        log.write(encode_message(1, Record(HIGHEST, 100, b"b", b"v")))
    return partition


BAD: dict[str, Callable[[Path, str], Path]] = {
    "last": lambda root, name: write(root, name, two(encode(lone(HIGHEST, b"b")))),
    "beyond": lambda root, name: write(
        root, name, two(encode(lone(ACTIVE + 1, b"b", HIGHEST + 5)))
    ),
    "legacy": lambda root, name: behind_a_message(write(root, name, [encode(lone(ACTIVE, b"a"))])),
    "closed": lambda root, name: write(
        root, name, [], [encode(lone(CLOSED, b"a")), encode(lone(HIGHEST, b"b"))]
    ),
}


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The `.log` with the last offset, beside two logs that are sound: one ends just before."""
    root = tmp_path / "logs"
    partition = BAD[request.param](root, "bad-0")
    write(root, "edge-0", two(encode(lone(HIGHEST - 1, b"b"))))
    make_partition(root, {0: [keyed(0, "ab"), keyed(2, "ab")], 4: [keyed(4, "a")]}, "fine-0")
    for snapshot in root.glob(f"*/*{SNAPSHOT}"):
        snapshot.unlink()
    return log_of(partition, CLOSED if request.param == "closed" else ACTIVE)


def log_dir(bad: Path) -> Path:
    return bad.parent.parent


def told_of(reason: str, bad: Path) -> bool:
    return f"{bad}, byte {AT}: " in reason and NO_NEXT in reason


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_a_run_cleans_the_others(
    bad: Path, compactor: Compactor, policy: str, words: tuple[str, ...]
) -> None:
    before, done = files_of(bad.parent), "would-clean" if words else "cleaned"
    ended = compactor("run", log_dir(bad), REPLICATED, *words, "--set", f"cleanup.policy={policy}")
    assert ended.code == 4
    assert told_of(ended.log("bad")["reason"], bad)
    assert {ended.log(topic)["status"] for topic in ("edge", "fine")} == {done}
    assert files_of(bad.parent) == before


def test_plan_and_explain_tell_it(bad: Path, compactor: Compactor) -> None:
    """What stands below the end of a log is not read by either."""
    if bad == log_of(bad.parent, CLOSED):
        return
    assert told_of(compactor("plan", log_dir(bad)).log("bad")["reason"], bad)
    explained = compactor("explain", log_dir(bad), "bad-0")
    assert (explained.code, told_of(json.dumps(explained.document), bad)) == (4, True)


@pytest.mark.parametrize("is_clean", [True, False])
def test_recovery_goes_on_with_the_others(bad: Path, compactor: Compactor, is_clean: bool) -> None:
    before = files_of(bad.parent)
    if not is_clean:
        (log_dir(bad) / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    ended = compactor("recover", log_dir(bad))
    by_name = {log["topic"]: log for log in ended.document["logs"]}
    if is_clean and bad == log_of(bad.parent, CLOSED):  # only the end of a log is looked at then
        assert (ended.code, by_name) == (0, {})
        return
    assert ended.code == 4
    assert told_of(by_name["bad"]["problem"], bad)
    assert files_of(bad.parent) == before
    assert by_name.keys() == ({"bad"} if is_clean else {"bad", "edge", "fine"})


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    capsys.readouterr()
    code = cli.main([*map(str, words)])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_verify_and_dump_name_the_place(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = said(capsys, "verify", log_dir(bad))
    assert code == 4 and told_of(told, bad) and "edge-0" not in told
    code, told = said(capsys, "dump", bad)
    assert code == 1 and told_of(told, bad)
    assert f"base_offset {CLOSED if 'closed' in str(bad) else bad.stem}"[:12] in told


@pytest.mark.parametrize("side", ["before", "after"])
def test_so_does_a_comparison(bad: Path, capsys: pytest.CaptureFixture[str], side: str) -> None:
    other = log_dir(bad).parent / "other"
    shutil.copytree(log_dir(bad), other)
    for path in (other / "bad-0").glob("*.log"):
        path.write_bytes(path.read_bytes()[:AT])
    sides = (log_dir(bad), other) if side == "after" else (other, log_dir(bad))
    code, told = said(capsys, "verify", sides[0], "--against", sides[1])
    told = " ".join(told.split())
    assert code == 4
    assert f"{bad}, byte {AT}: " in told
    assert "no offset can follow it" in told
    assert "edge-0" not in told and "fine-0" not in told


def test_undo_goes_by_what_the_run_has_left(
    local: LocalRound, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch with the last offset has come since. What is appended is not read, and stays."""
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    path = log_of(kept.log_dir / "orders-0", 18)
    path.write_bytes(path.read_bytes() + encode(lone(HIGHEST, b"z")))
    end = path.read_bytes()
    code, told = said(capsys, "undo", kept.run_dir, "--format", "json")
    document: dict[str, Any] = json.loads(told.splitlines()[-1])
    assert code == 0
    assert {log["status"] for log in document["logs"]} == {"undone"}
    assert path.read_bytes() == end


def test_names_at_the_highest_offset(tmp_path: Path, compactor: Compactor) -> None:
    """An empty segment that begins there is where a log ends that has used all offsets but one."""
    root = tmp_path / "logs"
    closed = [encode(lone(CLOSED, b"a")), encode(lone(HIGHEST - 1, b"b"))]
    partition = write(root, "bad-0", [], closed)
    assert (partition / file_name(HIGHEST, LOG)).read_bytes() == b""
    ended = compactor("run", root, REPLICATED)
    assert (ended.code, ended.log("bad")["status"]) == (0, "cleaned")
    (root / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    assert compactor("recover", root).code == 0
