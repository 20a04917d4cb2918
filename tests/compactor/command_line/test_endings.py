"""Every ending of every command says the same things about itself, for whoever schedules it."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compactor import views
from compactor.command_line import cli
from compactor.host.machine import version
from compactor.outcome.exit_codes import Terminated
from storage.formats import clean_shutdown
from tests.support.command_process import hangups
from tests.support.file_states import state_of
from tests.support.local_command import run_command
from tests.support.lock_holding import holding
from tests.support.strict_schema import strict_validator

pytestmark = pytest.mark.usefixtures("without_spark")

COMPACT = ("--include", "orders", "--set", "cleanup.policy=compact")
RUN = (*COMPACT, "--set", "min.cleanable.dirty.ratio=0", "--assume-fully-replicated")
SCHEMA = strict_validator()
ENDING = {
    *("schema_version", "command", "status", "exit_code", "reason_code", "changed", "run_id"),
    *("version", "host", "started_at_ms", "started_at", "seconds", "as_of_ms", "as_of", "log_dirs"),
}


def nothing(_: Path) -> None:
    """Leave the log directory as it is."""


def unclean(log_dir: Path) -> None:
    (log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()


def damaged(log_dir: Path) -> None:
    path = max((log_dir / "orders-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-5])


def without_high_watermarks(log_dir: Path) -> None:
    (log_dir / "replication-offset-checkpoint").unlink()


def with_an_odd_file(log_dir: Path) -> None:
    (log_dir / "odd").write_bytes(b"odd")


def with_zeroed_time_indexes(log_dir: Path) -> None:
    for path in (log_dir / "orders-0").glob("*.timeindex"):
        path.write_bytes(bytes(12))


# nothing is dirty enough to be cleaned
DELETE = "--include orders --set cleanup.policy=compact,delete --set min.cleanable.dirty.ratio=1"

Prepare = Callable[[Path], object]
# words (D: the log directory), what is done to it before, exit code, reason code, changed
ENDINGS: list[tuple[str, Prepare, int, str, bool]] = [
    ("plan D", nothing, 0, "nothing-to-do", False),
    (f"plan D {' '.join(COMPACT)}", nothing, 0, "done", False),
    (f"plan D {' '.join(COMPACT)}", damaged, 4, "logs-set-aside", False),
    (f"plan D {' '.join(COMPACT)} --fail-if max_dirty_ratio>0", nothing, 5, "condition", False),
    ("plan D --include nothing-like-it", nothing, 2, "wrong-configuration", False),
    ("plan D --config no.toml", nothing, 2, "wrong-configuration", False),
    ("plan D --no-such-option", nothing, 2, "wrong-usage", False),
    ("plan /no/such/directory", nothing, 2, "wrong-usage", False),
    (f"run D {' '.join(RUN)}", nothing, 0, "done", True),
    (f"run D {' '.join(RUN)} --dry-run", nothing, 0, "done", False),
    (f"run D {' '.join(RUN)}", damaged, 4, "logs-set-aside", False),
    (f"run D {' '.join(RUN)} --on-corrupt fail", damaged, 1, "damaged", False),
    (f"run D {' '.join(RUN)}", unclean, 3, "unclean-shutdown", False),
    (f"run D {' '.join(COMPACT)}", without_high_watermarks, 3, "replication-unknown", False),
    (f"run D {DELETE} --set retention.ms=1 --assume-fully-replicated", nothing, 0, "done", True),
    (
        f"run D {DELETE} --set retention.ms=4000 --as-of 5000 --any-clock "
        "--assume-fully-replicated",
        with_zeroed_time_indexes,
        *(4, "logs-set-aside", False),
    ),
    ("run s3://bucket/logs", nothing, 3, "file-system", False),
    ("recover D", nothing, 0, "done", False),
    ("recover D --set no.such.setting=1", nothing, 2, "wrong-configuration", False),
    ("undo D", nothing, 2, "wrong-usage", False),
    ("verify D", nothing, 0, "done", False),
    ("verify D", damaged, 4, "findings", False),
    ("verify D --as-of 5", nothing, 2, "wrong-usage", False),
    ("explain D orders-0", nothing, 0, "done", False),
    ("explain D orders-0 --set cleanup.policy=compact", damaged, 4, "logs-set-aside", False),
    ("explain D nothing-0", nothing, 2, "wrong-configuration", False),
    ("configs D", nothing, 0, "done", False),
    ("configs D nothing", nothing, 2, "wrong-usage", False),
    ("dump D/nothing", nothing, 2, "wrong-usage", False),
    ("dump D/odd", with_an_odd_file, 1, "unsupported-format", False),
    ("dump", nothing, 2, "wrong-usage", False),
    ("log offsets D orders-0", nothing, 0, "done", False),
    ("log offsets D nothing-0", nothing, 2, "wrong-usage", False),
    ("log read D nothing-0", nothing, 2, "wrong-usage", False),
    ("log roll D orders-0 --yes", nothing, 0, "done", True),
    ("log roll D orders-0 --dry-run", nothing, 0, "done", False),
    ("log roll D orders-0 --yes", unclean, 3, "unclean-shutdown", False),
    ("log truncate D orders-0 --to 1 --yes", nothing, 3, "other-replicas", False),
    ("log nothing", nothing, 2, "wrong-usage", False),
]


@pytest.mark.parametrize(
    ("words", "prepare", "code", "reason_code", "changed"),
    ENDINGS,
    ids=[f"{words}, {prepare.__name__}" for words, prepare, *_ in ENDINGS],
)
def test_an_ending(
    log_dir: Path,
    tmp_path: Path,
    words: str,
    prepare: Prepare,
    code: int,
    reason_code: str,
    changed: bool,
) -> None:
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    prepare(log_dir)
    before = state_of(log_dir)
    given = [word.replace("D", str(log_dir), 1) for word in words.split()]
    takes_report = given[0] not in ("dump", "log") and "--no-such-option" not in given
    given += ["--report", str(tmp_path / "r.json")] if takes_report else []
    ended = run_command(*given)
    said = ended.summary
    SCHEMA.validate(said)
    if takes_report:
        report = json.loads((tmp_path / "r.json").read_text())
        SCHEMA.validate(report)
        assert "configuration" in report
    assert (ended.code, said["reason_code"], said["changed"]) == (code, reason_code, changed)
    assert said["exit_code"] == code
    assert said.keys() >= ENDING
    assert ("error" in said) == (code in (1, 2, 3))
    assert said["version"] == version()
    assert said["host"] == os.uname().nodename
    if not changed:
        assert state_of(log_dir).items() >= before.items(), "it said that nothing was changed"


def test_a_report_has_the_settings_too_and_who_made_them(log_dir: Path, tmp_path: Path) -> None:
    run_command("plan", log_dir, *COMPACT, "--report", tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["configuration"]["include"] == "orders"
    policy = {"value": "compact", "source": "--set"}
    assert document["configuration"]["topics"] == {"orders": {"cleanup.policy": policy}}
    assert [log_dir["path"] for log_dir in document["log_dirs"]] == [str(log_dir)]


def test_a_log_directory_is_named_once_however_it_was_given(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log_dir.parent)
    said = run_command("run", log_dir.name, *RUN, "--dry-run").summary
    assert said["log_dirs"] == [{"path": str(log_dir)}]


def test_one_that_ended_before_it_read_any_has_none(log_dir: Path, tmp_path: Path) -> None:
    unclean(log_dir)
    run_command("run", log_dir, "--report", tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    assert (document["configuration"], document["as_of_ms"]) == (None, None)
    assert document["log_dirs"] == [{"path": str(log_dir)}]


def test_a_run_and_what_it_keeps_have_the_name_of_its_ending(log_dir: Path, tmp_path: Path) -> None:
    ended = run_command("run", log_dir, *RUN, "--keep-originals", tmp_path / "kept")
    assert os.listdir(tmp_path / "kept") == [ended.summary["run_id"]]


def test_undo_says_what_it_changed(log_dir: Path, tmp_path: Path) -> None:
    run_command("run", log_dir, *RUN, "--keep-originals", tmp_path / "kept")
    [run_dir] = (tmp_path / "kept").iterdir()
    said = run_command("undo", run_dir).summary
    assert (said["reason_code"], said["changed"]) == ("done", True)
    assert said["log_dirs"] == [{"path": str(log_dir)}]
    said = run_command("undo", run_dir).summary
    assert (said["reason_code"], said["changed"]) == ("done", False)
    said = run_command("undo", run_dir, "--discard").summary
    assert (said["reason_code"], said["changed"]) == ("done", True)


WHOLE = (
    f"plan D {' '.join(COMPACT)} --sample",
    "plan D --fail-if passed_over>0",
    "plan D --include orders --set cleanup.policy=compact,delete",
    f"run D {' '.join(RUN)} --dry-run",
    f"run D {' '.join(RUN)} --output D.copy",
    "configs D",
    "inspect D orders-0 --set cleanup.policy=compact",
    "doctor D",
    "explain D orders-0 --set cleanup.policy=compact",
    "explain D orders-0",
    "verify D",
    "verify D --against D.before",
    "recover D",
    "log offsets D orders-0 --at 2026-01-01",
    "log roll D orders-0 --dry-run",
    "log truncate D orders-0 --to 1 --dry-run --only-replica",
    "log move D orders-0 D.other --dry-run",
    "report R",
)


@pytest.mark.parametrize("prepare", [nothing, damaged])
@pytest.mark.parametrize("words", WHOLE)
def test_every_field_of_a_whole_document_stands_in_the_schema(
    log_dir: Path, tmp_path: Path, words: str, prepare: Prepare
) -> None:
    """The schema is strict here: a field that it does not know is one too many."""
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    prepare(log_dir)
    shutil.copytree(log_dir, f"{log_dir}.before")
    shutil.copytree(log_dir, f"{log_dir}.other", ignore=shutil.ignore_patterns("*-0"))
    given = [word.replace("D", str(log_dir), 1) for word in words.split()]
    if given[-1] == "R":
        run_command("run", log_dir, *RUN, "--dry-run", "--report", tmp_path / "R.json")
        given[-1] = str(tmp_path / "R.json")
    document = json.loads(run_command(*given, "--format", "json").out)
    SCHEMA.validate(document)
    assert document["command"] == " ".join(words.split()[: 1 + words.startswith("log")])
    assert prepare is damaged or "error" not in document


def test_what_undo_leaves_and_verify_finds_has_a_code_of_its_own(
    log_dir: Path, tmp_path: Path
) -> None:
    run_command("run", log_dir, *RUN, "--keep-originals", tmp_path / "kept")
    [run_dir] = (tmp_path / "kept").iterdir()
    copy = tmp_path / "before"
    shutil.copytree(log_dir, copy)
    damaged(log_dir)
    (log_dir / "orders-0" / "00000000000000000099.log.cleaned").write_bytes(b"")
    found = json.loads(run_command("verify", log_dir, "--format", "json").out)
    SCHEMA.validate(found)
    assert {finding["reason_code"] for finding in found["findings"]} == {"damaged", "cut-short"}
    run_command("log", "roll", log_dir, "orders-0", "--yes", "--recover-first")
    undone = json.loads(run_command("undo", run_dir, "--format", "json").out)
    SCHEMA.validate(undone)
    [log] = undone["logs"]
    assert (log["status"], log["reason_code"]) == ("refused", "changed-meanwhile")


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The lock of a log directory, by a process of its own."""
    path.touch()
    pipe = subprocess.PIPE
    with subprocess.Popen(holding(path), stdin=pipe, stdout=pipe) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield
        holder.stdin.close()


HELD = [(nothing, "lock-held"), (unclean, "broker-running")]


@pytest.mark.parametrize(("prepare", "reason"), HELD)
def test_a_lock(log_dir: Path, prepare: Prepare, reason: str) -> None:
    prepare(log_dir)
    with held(log_dir / ".lock"):
        said: dict[str, Any] = run_command("run", log_dir).summary
    assert (said["exit_code"], said["reason_code"], said["changed"]) == (3, reason, False)


@pytest.mark.parametrize(
    ("error", "code", "reason_code"),
    [(Terminated(), 143, "interrupted"), (KeyboardInterrupt(), 130, "interrupted"),
     (MemoryError(), 1, "internal-error")],
)  # fmt: skip
def test_what_ends_a_long_document_while_it_is_made_ends_the_command_as_ever(
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    reason_code: str,
) -> None:
    def ended(*_: object) -> None:
        raise error

    monkeypatch.setattr(views, "plan_document", ended)
    report = tmp_path / "r.json"
    said = run_command("plan", log_dir, *COMPACT, "--report", report)
    assert (said.code, said.summary["reason_code"]) == (code, reason_code)
    assert "Nothing was changed." in said.error.splitlines()[0] and "Traceback" not in said.error
    assert json.loads(report.read_text())["exit_code"] == code
    as_json = run_command("plan", log_dir, *COMPACT, "--format", "json")
    assert (as_json.code, as_json.summary["exit_code"]) == (code, code)
    assert run_command("plan", log_dir, *COMPACT).code == 0  # where nobody reads it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["with_ending", "write_report", "_write_metrics"])
def test_a_signal_at_the_end_of_a_run_takes_no_report_away(
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    moment: str,
) -> None:
    """A scheduler that ends a run in the moment in which it is done finds what it did."""
    real = getattr(cli, moment)

    def interrupted(*words: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*words)

    monkeypatch.setattr(cli, moment, interrupted)
    report, metrics = tmp_path / "run.json", tmp_path / "run.prom"
    with hangups():
        ended = run_command("run", log_dir, *RUN, "--report", report, "--metrics", metrics)
    assert ended.code == 0
    assert json.loads(report.read_bytes())["reason_code"] == "done"
    assert metrics.exists()
