"""Tasks by themselves: names with the attempt in them, rows, what one leaves when it fails."""

import errno
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.messages import (
    LogRules,
    Part,
    Piece,
    Rewritten,
    RoundSettings,
    TaskProblem,
    Verdict,
    save_task,
    task_file,
    value_of,
)
from cleaner_jobs.tasks import task as tasks
from cleaner_jobs.tasks.rewrite_task import rewrite_piece
from cleaner_jobs.tasks.task import SyncPool, run_task
from compactor.planning.layout import sources_of, stretches_of
from storage.file_names import LOG, file_name
from storage.files.local import LocalFiles
from tests.support.local_round import settings_in
from tests.support.made_log import NOW_MS, files_of, keyed, log_of, make_partition, plan_of

Values = tuple[str, list[Any]]


class Stage:
    """Runs tasks of one round by number."""

    def __init__(self, root: Path, dry_run: bool = False) -> None:
        self.partition = make_partition(
            root / "logs", {0: [keyed(0, "ab")], 2: [keyed(2, "ac")], 4: []}
        )
        self.plan = plan_of(self.partition, [[0, 2]], 4)
        self.settings: RoundSettings = settings_in(root / "work", NOW_MS, dry_run)
        self._numbers = 0

    def run(self, stage: str, attempts: Sequence[str], **task: Any) -> list[list[Values]]:
        work_dir, number = self.settings.work_dir, self._numbers
        self._numbers += 1
        save_task(task_file(work_dir, stage, number), {"settings": self.settings, **task})
        found = []
        for attempt in attempts:
            rows = run_task(work_dir, stage, number, attempt)
            found.append([(kind, json.loads(value)) for kind, value in rows])
        return found

    def run_again(self, stage: str, attempt: str) -> list[Values]:
        """Another try of the task that was run last."""
        rows = run_task(self.settings.work_dir, stage, self._numbers - 1, attempt)
        return [(kind, json.loads(value)) for kind, value in rows]

    def forget_partial_results(self) -> None:
        for path in (Path(self.settings.work_dir) / "partial-results").iterdir():
            path.unlink()

    def parts(self) -> list[Part]:
        (rows,) = self.run("scan", ["s"], stretches=stretches_of(self.plan, lambda _: ()))
        return [value_of(Part, values) for _, values in rows]

    def rewrite_task(self) -> dict[str, Any]:
        parts = self.parts()
        (rows,) = self.run("resolve", ["r"], logs=[(0, parts)], hash_partitions=[(0, 0)])
        verdicts = tuple(value_of(Verdict, values) for _, values in rows)
        rules = LogRules(0, str(self.partition), 4, 1000, 4096, 1 << 20, (), verdicts)
        piece = Piece(0, 0, 0, 1, tuple(parts), 0, sources_of(self.plan)[0])
        return {"logs": [rules], "pieces": [piece]}


def test_two_attempts_write_under_names_of_their_own(tmp_path: Path) -> None:
    """A task may run twice, at once, in two places."""
    stage = Stage(tmp_path)
    first, second = stage.run(
        "scan", ["one", "two"], stretches=stretches_of(stage.plan, lambda _: ())
    )
    names = [os.path.basename(value_of(Part, rows[0][1]).file) for rows in (first, second)]
    assert names == ["one.parts", "two.parts"]
    place = Part._fields.index("file")
    for rows in (first, second):
        rows[0][1][place] = ""
    assert first == second
    task = stage.rewrite_task()
    stage.run("rewrite", ["3-one"], **task)
    stage.forget_partial_results()  # as if it had not been there yet when the other began
    stage.run_again("rewrite", "3-two")
    staged = sorted(name for name in os.listdir(stage.partition) if "compactor" in name)
    assert len(staged) == 6 and sum(name.endswith("3-one") for name in staged) == 3
    stem = file_name(0, LOG) + ".compactor-run-3-"
    contents = files_of(stage.partition)
    assert contents[stem + "one"] == contents[stem + "two"] != b""
    # a broker ignores names like these (F-2.5)
    endings = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    assert not any(name.endswith((*endings, ".cleaned", ".swap", ".deleted")) for name in staged)


def test_a_task_that_is_tried_again_takes_over_partial_results(tmp_path: Path) -> None:
    """By then the driver may have swapped the group in, and its sources may be gone."""
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    (first,) = stage.run("rewrite", ["one"], **task)
    log_of(stage.partition, 0).unlink()
    assert stage.run_again("rewrite", "two") == first
    staged = [name for name in os.listdir(stage.partition) if "compactor" in name]
    assert len(staged) == 3 and all(name.endswith("-one") for name in staged)


def test_a_try_that_fails_beside_another_takes_over_its_partial_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    first: list[Values] = []

    def overtaken(*arguments: Any) -> Rewritten:
        monkeypatch.setattr(tasks, "rewrite_piece", rewrite_piece)
        first.extend(stage.run_again("rewrite", "faster"))
        log_of(stage.partition, 0).unlink()  # swapped in, and the sources removed
        return rewrite_piece(*arguments)

    monkeypatch.setattr(tasks, "rewrite_piece", overtaken)
    (second,) = stage.run("rewrite", ["slower"], **task)
    assert second == first and second[0][0] == "rewritten"


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    """A try that was killed while it wrote an partial result."""
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    (first,) = stage.run("rewrite", ["one"], **task)
    (partial_results,) = (Path(stage.settings.work_dir) / "partial-results").iterdir()
    partial_results.write_bytes(partial_results.read_bytes()[:-1])
    (second,) = [stage.run_again("rewrite", "two")]
    assert [values[4].endswith("-two") for _, values in second] == [True]
    assert len(first) == len(second) == 1


def test_a_rewrite_that_fails_leaves_no_staged_file(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    before = files_of(stage.partition)
    path = log_of(stage.partition, 2)
    os.utime(path, ns=(1, 1))
    (rows,) = stage.run("rewrite", ["a"], **task)
    ((kind, values),) = rows
    assert kind == "problem"
    problem = value_of(TaskProblem, values)
    assert (problem.log_id, problem.code, problem.path) == (0, "changed-meanwhile", str(path))
    assert files_of(stage.partition) == before


def test_after_a_problem_a_logs_other_pieces_are_not_rewritten(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    task["pieces"] *= 3
    log_of(stage.partition, 0).unlink()
    (rows,) = stage.run("rewrite", ["a"], **task)
    assert [(kind, values[:2]) for kind, values in rows] == [("problem", [0, "not-found"])]


def test_a_damaged_part_file_fails_the_rewrite_with_its_name(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    path = Path(task["pieces"][0].parts[0].file)
    path.write_bytes(path.read_bytes()[:-1] + b"\x03")
    (rows,) = stage.run("rewrite", ["a"], **task)
    assert rows[0][0] == "problem"
    assert value_of(TaskProblem, rows[0][1]).path == str(path)


def test_a_dry_run_stages_nothing_and_counts_the_same(tmp_path: Path) -> None:
    wet, dry = Stage(tmp_path / "wet"), Stage(tmp_path / "dry", dry_run=True)
    before = files_of(dry.partition)
    (wet_rows,) = wet.run("rewrite", ["a"], **wet.rewrite_task())
    (dry_rows,) = dry.run("rewrite", ["a"], **dry.rewrite_task())
    assert files_of(dry.partition) == before
    names = ("log_bytes", "records_kept", "batches_kept", "batches_rebuilt", "batches_emptied")
    wet_result, dry_result = (
        value_of(Rewritten, wet_rows[0][1]),
        value_of(Rewritten, dry_rows[0][1]),
    )
    assert [getattr(wet_result, n) for n in names] == [getattr(dry_result, n) for n in names]
    assert dry_result[4:8] == ("", "", "", "")


def test_a_second_try_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """Names are unique; what stands there is somebody else's."""
    stage = Stage(tmp_path)
    task = stage.rewrite_task()
    (rows,) = stage.run("rewrite", ["a"], **task)
    assert rows[0][0] == "rewritten"
    stage.forget_partial_results()
    assert stage.run_again("rewrite", "a")[0][0] == "problem"
    with pytest.raises(FileNotFoundError):
        list(run_task(stage.settings.work_dir, "scan", 99, "a"))


def test_every_file_is_synced_before_failures_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    synced, may_go_on = [], threading.Event()

    def sync(path: str) -> None:
        may_go_on.wait()
        synced.append(path)

    monkeypatch.setattr(LocalFiles, "sync_file", staticmethod(sync))
    with SyncPool() as pool:
        pool.start(1, ["a", "b"])
        pool.start(2, ["c"])
        assert synced == []
        may_go_on.set()
        assert pool.failures() == {}
        assert sorted(synced) == ["a", "b", "c"]
        assert pool.failures() == {}


def test_of_each_log_the_first_failure_is_returned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(path: str) -> None:
        if path != "sound":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(LocalFiles, "sync_file", staticmethod(sync))
    with SyncPool() as pool:
        pool.start(1, ["sound"])
        pool.start(2, ["sound", "x", "y"])
        pool.start(3, ["z"])
        failures = pool.failures()
        assert {log_id: error.filename for log_id, error in failures.items()} == {2: "x", 3: "z"}
        assert pool.failures() == {}


def test_what_is_no_error_of_the_disk_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(_: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LocalFiles, "sync_file", staticmethod(sync))
    with SyncPool() as pool:
        pool.start(1, ["a"])
        with pytest.raises(ZeroDivisionError):
            pool.failures()


def test_leaving_waits_for_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(LocalFiles, "sync_file", staticmethod(synced.append))
    with SyncPool() as pool:
        pool.start(1, list("abcdefghijklmnop"))
    assert len(synced) == 16
