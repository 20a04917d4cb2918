"""`compactor log read`: which records, in which form, beside whom, and what damage does."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor import api
from compactor.errors import UsageError
from compactor.offline_log import record_tables
from compactor.offline_log.record_filter import ReadRecord
from compactor.views.record_lines import Form, csv_line
from demo.new_log_dir import new_log_dir
from storage.arrow import reading
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from tests.compactor.offline_log.made_logs import CLOCK_MS, SMALL, Line, files_in, make
from tests.engine.replay.replayed import replayed
from tests.support.local_command import run_command

NAME = "orders-0"
ALL = [0, 1, 2, 4, 6, 7, 8, 9]  # 3 and 5 are markers


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make(tmp_path / "log")


def rows(log_dir: Path, *words: object) -> list[dict[str, Any]]:
    ended = run_command("log", "read", log_dir, NAME, "--format", "json", *words)
    assert ended.code == 0, ended.error
    return [json.loads(line) for line in ended.out.splitlines()]


def program(log_dir: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "compactor", "log", "read", str(log_dir), NAME, *words]


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ([], ALL),
        (["--from", "start"], ALL),
        (["--from", "6"], [6, 7, 8, 9]),
        (["--from", "7"], [7, 8, 9]),  # within a batch
        (["--from", "2", "--to", "7"], [2, 4, 6]),
        (["--to", "1"], [0]),
        (["--from", "99"], []),
        (["--from", f"@{CLOCK_MS - 3950}"], [2, 4, 6, 7, 8, 9]),
        (["--from", "2023-11-14T22:13:18.050Z"], [4, 6, 7, 8, 9]),
        (["--to", f"@{CLOCK_MS + 1}"], ALL),
        (["--limit", "3"], [0, 1, 2]),
        (["--isolation", "committed"], [0, 1, 2, 6, 7]),  # 4 was aborted, 8 is open
        (["--isolation", "high-watermark"], ALL),
        (["--max-bytes", "1"], [0]),
        (["--key", "a"], [0, 4, 6]),
        (["--key", "a", "--limit", "2"], [0, 4]),
        (["--key", "61", "--keys", "hex"], [0, 4, 6]),
        (["--key", "YQ==", "--keys", "base64", "--from", "3"], [4, 6]),
    ],
)
def test_which_records(made: Path, words: list[str], offsets: list[int]) -> None:
    """That 4 comes for a time after its own is Kafka's answer: the marker at 3 is not older."""
    before = files_in(made)
    assert [row["offset"] for row in rows(made, *words)] == offsets
    assert files_in(made) == before


def test_the_high_watermark_is_that_of_the_checkpoint(made: Path) -> None:
    checkpoint.write(str(made / checkpoint.REPLICATION), {("orders", 0): 7})
    # within the batch of 6 and 7, of which a fetch of Kafka's then gives nothing
    assert [r["offset"] for r in rows(made, "--isolation", "high-watermark")] == [0, 1, 2, 4]
    assert [r["offset"] for r in rows(made, "--isolation", "committed")] == [0, 1, 2]


class TestForms:
    def test_json(self, made: Path) -> None:
        assert rows(made, "--from", "6", "--limit", "1") == [
            {"offset": 6, "timestamp": CLOCK_MS - 2000, "timestamp_type": "CreateTime",
             "key": "a", "value": "3", "headers": [["trace", "x"], ["none", None]]}
        ]  # fmt: skip
        assert rows(made, "--from", "2", "--limit", "1")[0]["value"] is None

    def test_what_is_read_can_be_appended(self, made: Path, tmp_path: Path) -> None:
        lines = tmp_path / "records.jsonl"
        odd = {"key": {"hex": "ff00"}, "value": {"base64": "/w=="}}
        lines.write_text(json.dumps(odd) + "\n")
        words = ["--only-replica", "--yes", "--records", lines]
        assert run_command("log", "append", made, NAME, *words).code == 0
        first = rows(made)
        lines.write_text("".join(json.dumps(row) + "\n" for row in first))
        assert run_command("log", "append", made, NAME, *words).code == 0
        again = rows(made, "--from", "11")
        assert [r | {"offset": 0} for r in again] == [r | {"offset": 0} for r in first]

    @pytest.mark.parametrize(
        ("form", "key", "value"),
        [
            ("text", "a", "3"),
            ("hex", {"hex": "61"}, {"hex": "33"}),
            ("base64", {"base64": "YQ=="}, {"base64": "Mw=="}),
            ("json", "a", 3),
        ],
    )
    def test_keys_and_values(self, made: Path, form: str, key: object, value: object) -> None:
        (row,) = rows(made, "--from", "6", "--to", "7", "--keys", form, "--values", form)
        assert (row["key"], row["value"]) == (key, value)

    def test_csv(self, made: Path) -> None:
        ended = run_command("log", "read", made, NAME, "--format", "csv", "--values", "hex")
        header, *found = csv.reader(ended.out.splitlines())
        assert header[:6] == ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
        assert header[6:] == ["key_form", "value_form"]
        assert [int(row[0]) for row in found] == ALL
        headers = '[["trace", "x"], ["none", null]]'
        assert found[4][3:] == ["a", "33", headers, "text", "hex"]
        assert ended.out.splitlines()[3] == f'2,{CLOCK_MS - 3900},CreateTime,"c",,,text,'

    def test_bytes_and_a_text_that_looks_like_them_differ_in_csv(self) -> None:
        keys = b"\xff", b"\\xff", b"ff", b"", None
        read = [ReadRecord(0, None, None, key, b"", ()) for key in keys]
        found = csv.reader(csv_line(record, Form.TEXT, Form.TEXT) for record in read)
        assert [(row[3], row[6]) for row in found] == [
            ("ff", "hex"), ("\\xff", "text"), ("ff", "text"), ("", "text"), ("", "")
        ]  # fmt: skip

    def test_a_table(self, made: Path) -> None:
        lines = run_command("log", "read", made, NAME).out.splitlines()
        assert lines[2] == "           2  2023-11-14T22:13:16.100Z  c  NULL"
        assert lines[4].endswith("  a  3  trace=x  none=NULL")

    def test_bare_values(self, made: Path) -> None:
        found = subprocess.run(
            program(made, "--format", "values"), check=True, capture_output=True
        ).stdout
        assert found == b"1\n2\ngone\n3\n4\n5\n6\n"

    def test_parquet(self, made: Path, tmp_path: Path) -> None:
        path = tmp_path / "records.parquet"
        words = ["--format", "parquet", "--output", path, "--isolation", "committed"]
        ended = run_command("log", "read", made, NAME, *words)
        assert (ended.code, ended.out) == (0, "")
        assert "5 records in " in ended.error
        table = pq.read_table(path)
        assert table.column("offset").to_pylist() == [0, 1, 2, 6, 7]
        assert table.column("key").to_pylist() == [b"a", b"b", b"c", b"a", b"d"]
        assert table.column("topic").to_pylist() == ["orders"] * 5
        assert sorted(os.listdir(tmp_path)) == ["log", "records.parquet"]

    @pytest.mark.parametrize(
        ("rows", "size_bytes", "expected"),
        [(2, 1 << 20, [3, 3, 2]), (9, 1, [3, 1, 2, 2]), (9, 1 << 20, [8])],
    )
    def test_row_groups_of_parquet_have_a_usual_size(
        self,
        made: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        rows: int,
        size_bytes: int,
        expected: list[int],
    ) -> None:
        """Arrow batches of 3, 1, 2 and 2 records are joined."""
        monkeypatch.setattr(reading, "JOINED_ROWS", 1)
        monkeypatch.setattr(record_tables, "ROW_GROUP_ROWS", rows)
        monkeypatch.setattr(record_tables, "ROW_GROUP_BYTES", size_bytes)
        path = tmp_path / "records.parquet"
        api.log_to_parquet(str(made), NAME, str(path))
        metadata = pq.ParquetFile(path).metadata
        assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == expected


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            (["--from", "noon"], "--from noon: expected epoch milliseconds or ISO 8601"),
            (["--from", "noon"], "an offset, or start, will do as well"),
            (["--limit", "x"], "See: compactor log read --help"),
            (["--to", "-5"], "--to -5: outside of the years"),
            (["--format", "parquet"], "--format parquet: needs --output FILE"),
            (["--output", "x"], "--output: goes with --format parquet"),
            (["--follow", "--to", "7"], "--to 7: a log that is followed has no end"),
            (["--key", "xyz", "--keys", "hex"], "--key xyz: is not hex"),
        ],
    )
    def test_words_that_make_no_sense(self, made: Path, words: list[str], problem: str) -> None:
        ended = run_command("log", "read", made, NAME, *words)
        assert ended.code == 2
        assert problem in ended.error

    def test_parquet_into_a_log_directory(self, made: Path) -> None:
        before = files_in(made)
        words = ["--format", "parquet", "--output", made / "x.parquet"]
        assert run_command("log", "read", made, NAME, *words).code == 2
        assert files_in(made) == before


class TestDamage:
    def test_all_before_it_is_shown(self, made: Path, tmp_path: Path) -> None:
        path = made / NAME / "00000000000000000004.log"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        ended = run_command("log", "read", made, NAME, "--format", "json")
        assert ended.code == 1
        assert f"{path}, byte " in ended.error
        shown = [json.loads(line) for line in ended.out.splitlines()]
        assert [row["offset"] for row in shown if "offset" in row] == [0, 1, 2, 4]
        words = ["--format", "parquet", "--output", tmp_path / "x.parquet"]
        assert run_command("log", "read", made, NAME, *words).code == 1
        assert os.listdir(tmp_path) == ["log"]

    def test_of_a_torn_end_it_is_said(self, made: Path) -> None:
        path = made / NAME / "00000000000000000008.log"
        os.truncate(path, path.stat().st_size - 1)
        (made / ".kafka_cleanshutdown").unlink()
        ended = run_command("log", "read", made, NAME, "--format", "csv", "--from", "8")
        assert ended.code == 0
        assert len(ended.out.splitlines()) == 2
        assert f"{path}: damaged: what a broker that starts would cut off is not shown" in (
            ended.error
        )


def test_a_reader_that_has_enough_ends_it(made: Path) -> None:
    lines = "".join(json.dumps({"key": "k", "value": "v" * 100}) + "\n" for _ in range(5000))
    records = made.parent / "records.jsonl"
    records.write_text(lines)
    agreed = ["--only-replica", "--yes", "--records", records]
    assert run_command("log", "append", made, NAME, *agreed).code == 0
    for words in (["--format", "json"], ["--format", "values"], ["--follow"]):
        with subprocess.Popen(
            program(made, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as reading:
            assert reading.stdout is not None and reading.stderr is not None
            assert reading.stdout.readline()
            reading.stdout.close()
            assert reading.wait(timeout=60) == 0
            assert reading.stderr.read() == b""


class Writing:
    """A writer that is at work on a log, and does not close it."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir, self._script = log_dir, [*SMALL]
        replayed(LOCAL, str(log_dir), self._script)

    def go_on(self, *lines: Line) -> None:
        self._script += lines
        for path in sorted((self._log_dir / NAME).iterdir()):
            path.unlink()
        replayed(LOCAL, str(self._log_dir), self._script)


class TestFollowing:
    def test_what_is_appended_and_rolled_comes(self, tmp_path: Path) -> None:
        new: Line = {"op": "append", "leader_epoch": 5, "records": [{"k": "x", "v": "new"}]}
        many: Line = {"op": "append", "leader_epoch": 5, "codec": "lz4",
                      "records": [{"k": "x", "v": "1"}, {"k": "x", "v": "2"}]}  # fmt: skip
        abort: Line = {"op": "end_txn", "pid": 8, "epoch": 2, "commit": False, "leader_epoch": 5}
        steps = [[new], [abort, {"op": "roll"}, many], [{"op": "roll"}, {"op": "roll"}], [new]]
        writing = Writing(tmp_path / "log")
        found: list[list[tuple[int, bytes | None]]] = [[]]

        def wait() -> None:
            if steps:
                writing.go_on(*steps.pop(0))
            found.append([])

        for records in api.log_follow(
            str(tmp_path / "log"), NAME, api.ReadOptions(first="8", limit=6), wait
        ):
            found[-1] += [(record.offset, record.value) for record in records]
        wanted = [[(10, b"new")], [(12, b"1"), (13, b"2")], [], [(14, b"new")]]
        assert found == [[(8, b"5"), (9, b"6")], *wanted]

    def test_with_a_limit_it_ends(self, tmp_path: Path) -> None:
        new: Line = {"op": "append", "leader_epoch": 5, "records": [{"k": "a", "v": "new"}]}
        log_dir = str(tmp_path / "log")
        writing, options = Writing(tmp_path / "log"), api.ReadOptions(key=b"a", limit=5)
        read = api.log_follow(log_dir, NAME, options, lambda: writing.go_on(new))
        assert [record.offset for records in read for record in records] == [0, 4, 6, 10, 11]

    def test_half_a_batch_is_waited_for(self, tmp_path: Path) -> None:
        log_dir = make(tmp_path / "log")
        path = log_dir / NAME / "00000000000000000008.log"
        whole = path.read_bytes()
        os.truncate(path, 100)  # within the second batch
        steps = [whole[:130], whole[:138], whole]
        found: list[list[int]] = [[]]

        def wait() -> None:
            if steps:
                path.write_bytes(steps.pop(0))
            found.append([])

        (log_dir / ".kafka_cleanshutdown").unlink()
        read = api.log_follow(str(log_dir), NAME, api.ReadOptions(first="8"), wait)
        for records in read:
            found[-1] += [record.offset for record in records]
            if found[-1:] == [[9]]:
                break
        assert found == [[8], [], [], [9]]

    def test_a_log_that_is_cut_off_ends_it(self, tmp_path: Path) -> None:
        log_dir = make(tmp_path / "log")
        path = log_dir / NAME / "00000000000000000008.log"
        read = api.log_follow(str(log_dir), NAME, wait=lambda: os.truncate(path, 70))
        with pytest.raises(CorruptFileError, match="was cut off to 70 bytes; 140 were read"):
            for _ in read:
                pass

    def test_a_segment_that_is_truncated_away_ends_it(self, tmp_path: Path) -> None:
        log_dir = make(tmp_path / "log")
        path = log_dir / NAME / "00000000000000000008.log"
        read = api.log_follow(str(log_dir), NAME, wait=path.unlink)
        with pytest.raises(CorruptFileError, match=r"008.log.* was removed; .* up to offset 10"):
            for _ in read:
                pass

    def test_a_segment_that_retention_takes_does_not_end_it(self, tmp_path: Path) -> None:
        """The one that was read last is gone, and there is a later one."""
        log_dir = make(tmp_path / "log")
        last = log_dir / NAME / "00000000000000000008.log"
        batch = bytearray(last.read_bytes()[70:])  # of offset 9, and 10 from now on: not summed
        batch[7] = 10

        def wait() -> None:
            last.with_name("00000000000000000010.log").write_bytes(batch)
            last.unlink()

        options = api.ReadOptions(first="8", limit=3)
        found = [r.offset for rs in api.log_follow(str(log_dir), NAME, options, wait) for r in rs]
        assert found == [8, 9, 10]

    def test_only_all_there_is_can_be_followed(self, made: Path) -> None:
        read = api.log_follow(str(made), NAME, api.ReadOptions(isolation="committed"))
        with pytest.raises(UsageError, match=r"^options\.isolation committed: expected log-end"):
            next(read)


def test_a_log_of_more_segments_than_may_be_open_that_was_not_closed_is_read(
    tmp_path: Path,
) -> None:
    with new_log_dir(str(tmp_path / "log"), "test", clock=lambda: CLOCK_MS) as made:
        log = made.create(("orders", 0))
        for number in range(150):
            if number:
                log.roll()
            log.append_as_leader(encode_batch([Record(0, CLOCK_MS, b"k", b"%d" % number)]))
    for name in (CLEAN_SHUTDOWN, checkpoint.RECOVERY_POINT):
        (tmp_path / "log" / name).unlink()
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))"
    run = f"{few}; from compactor.command_line.cli import main; raise SystemExit(main())"
    words = ["log", "read", str(tmp_path / "log"), NAME, "--format", "json"]
    ended = subprocess.run([sys.executable, "-c", run, *words], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    found = [json.loads(line)["value"] for line in ended.stdout.splitlines()]
    assert found == [str(number) for number in range(150)]
