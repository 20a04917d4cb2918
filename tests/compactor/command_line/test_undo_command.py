"""`compactor undo` and the options of `run` that go with it: exit codes, lines, what is refused."""

import csv
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from compactor.command_line import cli
from compactor.errors import UsageError
from compactor.originals import kept_run
from compactor.originals.kept_manifest import RUN_FILE, KeptRun
from compactor.originals.originals_keeper import OriginalsKeeper
from compactor.settings import options
from storage.file_names import LOG, file_name
from storage.formats import clean_shutdown
from tests.compactor.log_dirs.test_locked_log_dirs import other_process
from tests.compactor.originals.test_undo import Kept, merged
from tests.compactor.small_log import build
from tests.compactor.small_rounds import flip
from tests.support.local_round import LocalRound

DAY_MS = 86_400_000


def discard_expired(directory: str, started_before_ms: int) -> list[str]:
    return kept_run.discard_expired(directory, started_before_ms, lambda: None)


@pytest.fixture
def kept(local: LocalRound, tmp_path: Path) -> Kept:
    """A run over two logs that is over."""
    made = Kept(local, merged(tmp_path / "logs"))
    made.run()
    return made


def undo(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any], str]:
    capsys.readouterr()
    code = cli.main(["undo", *map(str, words)])
    told = capsys.readouterr()
    return code, json.loads(told.out.splitlines()[-1]), told.out + told.err


def test_every_log_is_shown(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    code, summary, told = undo(capsys, kept.run_dir)
    assert (code, summary["status"]) == (0, "ok")
    assert summary["totals"]["logs"] == {"undone": 2, "as-before": 0, "refused": 0, "failed": 0}
    assert f"{kept.log_dir}: orders-0 undone: 5 segments, " in told
    assert [each["path"] for each in summary["log_dirs"]] == [str(kept.log_dir)]  # of two logs
    assert undo(capsys, kept.run_dir)[1]["totals"]["logs"]["as-before"] == 2


def test_a_row_says_whether_it_was_done(
    kept: Kept, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`undone` is the status of a log that would be, too."""
    for words, is_dry_run in ((("--dry-run",), "true"), ((), "false")):
        undo(capsys, kept.run_dir, *words, "--report", tmp_path / "undo.csv")
        rows = list(csv.DictReader((tmp_path / "undo.csv").read_text().splitlines()))
        assert [(row["status"], row["dry_run"]) for row in rows] == [("undone", is_dry_run)] * 2


def test_a_dry_run_says_what_would_come_back_and_changes_nothing(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(kept.log_dir / "prices-3" / file_name(0, LOG), 70)
    before = kept.files(), sorted(kept.run_dir.rglob("*"))
    code, summary, told = undo(capsys, kept.run_dir, "--dry-run")
    assert (code, summary["dry_run"]) == (4, True)
    assert summary["totals"]["logs"] == {"undone": 1, "as-before": 0, "refused": 1, "failed": 0}
    assert "orders-0 would be undone: 5 segments, " in told
    assert "prices-3 would be left as it is: " in told
    assert "Dry run: nothing was changed." in told and f"compactor undo {kept.run_dir}\n" in told
    assert "undone_run" not in undo(capsys, kept.run_dir, "--dry-run", "--format", "json")[1]
    assert (kept.files(), sorted(kept.run_dir.rglob("*"))) == before
    assert undo(capsys, kept.run_dir)[1]["totals"] == summary["totals"]
    told = undo(capsys, kept.run_dir, "--dry-run")[2]
    assert "orders-0 as before the run" in told and "This brings them back" not in told


def test_a_dry_run_finds_a_kept_file_that_is_damaged(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = next((kept.run_dir / "0" / "orders-0").rglob("*.log"))
    damaged.write_bytes(b"not what was kept")
    code, document, told = undo(capsys, kept.run_dir, "--dry-run")
    assert code == 4 and document["totals"]["logs"]["failed"] == 1
    assert "orders-0 would fail: " in told and "not the file that was kept" in told


def test_a_dry_run_is_refused_as_the_undo_would_be(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    with other_process(kept.log_dir / ".lock"):
        code, summary, _ = undo(capsys, kept.run_dir, "--dry-run")
        assert (code, summary["status"]) == (3, "refused")
    code, _, told = undo(capsys, kept.run_dir, "--dry-run", "--discard")
    assert code == 2 and "--discard and --dry-run" in told and kept.run_dir.exists()


@pytest.mark.parametrize(("logs", "code"), [(["orders-0"], 4), (["orders-0", "prices-3"], 3)])
def test_logs_that_changed_since_end_in_an_exit_code(
    kept: Kept, capsys: pytest.CaptureFixture[str], logs: list[str], code: int
) -> None:
    for name in logs:
        flip(kept.log_dir / name / file_name(0, LOG), 70)
    found, document, _ = undo(capsys, kept.run_dir, "--format", "json")
    assert found == document["exit_code"] == code
    refused = [log for log in document["logs"] if log["status"] == "refused"]
    assert [f"{log['topic']}-{log['partition']}" for log in refused] == logs
    assert "other bytes" in refused[0]["reason"]


def test_what_was_run_after_an_unclean_shutdown_can_be_undone(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """After `run --recover-first` there is no marker either, and `undo` needs none."""
    (kept.log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    code, document, _ = undo(capsys, kept.run_dir, "--format", "json")
    assert (code, document["status"]) == (0, "ok")
    assert {log["status"] for log in document["logs"]} == {"undone"}
    assert not (kept.log_dir / clean_shutdown.CLEAN_SHUTDOWN).exists()


def test_a_directory_in_use_is_refused(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    before = kept.files()
    with other_process(kept.log_dir / ".lock"):
        code, summary, told = undo(capsys, kept.run_dir)
    assert (code, summary["status"]) == (3, "refused")
    assert "locked" in told and "othing was changed" in told
    (kept.log_dir / ".lock").unlink()
    assert kept.files() == before


def test_what_was_kept_is_dropped_on_request_alone(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    after = kept.files()
    code, summary, _ = undo(capsys, kept.run_dir, "--discard")
    assert (code, summary["discarded"]) == (0, str(kept.run_dir))
    assert not kept.run_dir.exists() and kept.run_dir.parent.is_dir()
    assert kept.files() == after


@pytest.mark.parametrize("words", [[], ["--discard"]])
def test_a_directory_that_is_no_runs_is_left_alone(
    kept: Kept, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """For one, that of all runs."""
    for path in (kept.run_dir.parent, kept.log_dir, kept.log_dir / "none"):
        code, _, told = undo(capsys, path, *words)
        assert code == 2 and f"RUN_DIR {path}: " in told and "othing was changed" in told
    (kept.log_dir.parent / RUN_FILE).write_text("{}")
    code, _, told = undo(capsys, kept.log_dir.parent, *words)
    assert code == 1 and "not a compactor-originals file" in told
    assert (kept.run_dir / RUN_FILE).exists() and kept.log_dir.exists()


@pytest.mark.parametrize("broken", ["manifest", "removal"])
def test_what_had_gone_when_the_next_one_failed_is_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
) -> None:
    """Of a run whose removal has begun there is nothing to undo either."""
    log_dir, originals = build(tmp_path / "log").parent, tmp_path / "originals"
    clean_shutdown.write(str(log_dir))
    for run_id in ("0000aaaa", "0000bbbb"):
        OriginalsKeeper(str(originals), KeptRun(run_id, 0, (str(log_dir),))).close()
        (originals / run_id / "0").mkdir()
    if broken == "manifest":
        (originals / "0000bbbb" / RUN_FILE).write_text("damaged")
    else:
        remove = shutil.rmtree

        def failing(path: str) -> None:
            if "0000bbbb" in path:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            remove(path)

        monkeypatch.setattr(shutil, "rmtree", failing)
    words = ["--keep-originals", str(originals), "--keep-for", "1d"]
    assert cli.main(["run", str(log_dir), *words]) == 1
    assert os.listdir(originals) == ["0000bbbb"]
    runs = "1 run" if broken == "manifest" else "2 runs"
    told = f"Nothing was changed, except for originals of {runs}, kept until now, that had expired."
    assert capsys.readouterr().err.endswith(f" {told}\n")


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0s", 0), ("90s", 90_000), ("5m", 300_000), ("12h", DAY_MS // 2), ("7d", 7 * DAY_MS)],
)
def test_durations(text: str, ms: int) -> None:
    assert options.duration_ms("--keep-for", text) == ms


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1w", "1.5h", "7 d", "9999999999d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match=r"--keep-for .*: expected a number with s, m, h or d"):
        options.duration_ms("--keep-for", text)


def test_originals_are_never_kept_in_a_log_directory(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """F-1.4: no broker would start."""
    before = kept.files()
    for words in (
        ["--keep-originals", str(kept.log_dir / "originals")],
        ["--keep-originals", str(kept.log_dir)],
        ["--keep-for", "7d"],
    ):
        assert cli.main(["run", str(kept.log_dir), *words]) == 2
        told = capsys.readouterr().err
        assert "a broker that starts there would fail" in told or "which is not given" in told
    assert kept.files() == before


def test_what_a_live_run_keeps_is_not_discarded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long ago it began."""
    live = OriginalsKeeper(str(tmp_path), KeptRun("0000aaaa", 0, ()))
    assert discard_expired(str(tmp_path), 5 * DAY_MS) == []
    code, summary, _ = undo(capsys, tmp_path / "0000aaaa", "--discard")
    assert code == 3 and "still at work" in summary["error"]
    assert os.listdir(live.path) == [RUN_FILE]
    live.close()
    assert discard_expired(str(tmp_path), 5 * DAY_MS) == [str(tmp_path / "0000aaaa")]


@pytest.mark.parametrize("again", ["discard", "expire"])
def test_a_discard_that_was_cut_short_leaves_nothing_to_undo_and_is_gone_on_with(
    kept: Kept, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    def power_cut(path: str) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as cut:
        cut.setattr(shutil, "rmtree", power_cut)
        with pytest.raises(KeyboardInterrupt):
            kept_run.discard(str(kept.run_dir))
    before = kept.files()
    assert undo(capsys, kept.run_dir)[0] != 0 and kept.files() == before
    if again == "discard":
        assert undo(capsys, kept.run_dir, "--discard")[0] == 0
    else:
        assert discard_expired(str(kept.run_dir.parent), 0) == [str(kept.run_dir)]
    assert not kept.run_dir.exists()
