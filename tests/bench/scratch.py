"""Where logs are built and kept between runs, and copies of them made for each cleaning.

logs/NAME-DIGEST/log    a log as the oracle built it; Kafka's side puts its copies beside it
copies/                 for our side; gone after each turn
work/                   work directory of our runs
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.results import BenchError
from tests.bench.workloads import TOPIC_PARTITION, Workload
from tests.oracle import kafka

KAFKAS_COPIES = "bench*"  # as the oracle names them; a run that was stopped leaves one
BYTES_A_RECORD = 24  # beyond its value: key, lengths, deltas, its share of the batch header
LOGS_AT_ONCE = 3  # the log, a copy, and what is rewritten of it


@dataclass(frozen=True, slots=True)
class Scratch:
    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def copies(self) -> Path:
        return self.root / "copies"

    @property
    def work(self) -> Path:
        return self.root / "work"


@dataclass(frozen=True, slots=True)
class Setup:
    """What all measurements of a run have in common."""

    scratch: Scratch
    master: str
    repetitions: int
    tell: Callable[[str], None]
    is_quick: bool = False


def default_root() -> Path:
    """Return this user's own place in the system's temporary directory."""
    return Path(tempfile.gettempdir()) / f"log-compactor-bench-{os.getuid()}"


@contextmanager
def open_scratch(root: Path) -> Iterator[Scratch]:
    """Take the directory for one run; BenchError if another run has it."""
    scratch = Scratch(root.resolve())
    scratch.logs.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BenchError(f"{root}: another benchmark is using it") from error
        for folder in (scratch.copies, scratch.work):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield scratch
        shutil.rmtree(scratch.copies)
        shutil.rmtree(scratch.work)


def kept(scratch: Scratch, key: str, make: Callable[[Path], None]) -> Path:
    """Return the log directory of this key; it is made if it is missing, whole or not at all."""
    home = scratch.logs / key
    if not home.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=scratch.root))
        try:
            make(unfinished / "log")
            unfinished.rename(home)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    for leftover in home.glob(KAFKAS_COPIES):
        shutil.rmtree(leftover)
    return home / "log"


def built(scratch: Scratch, workload: Workload) -> Path:
    """Return the log directory that the oracle builds of a workload's script."""

    def build(log_dir: Path) -> None:
        _require_space(scratch.root, workload)
        script = log_dir.with_name("script.jsonl")
        script.write_text(workload.script(), "utf-8")
        try:
            kafka.run("build", script, log_dir)
        except kafka.OracleFailedError as error:
            raise BenchError(f"{workload.name}: {error}") from error

    return kept(scratch, workload.key(), build)


def log_bytes(log_dir: Path) -> int:
    """Return the bytes of all segments, without their indexes."""
    return sum(path.stat().st_size for path in (log_dir / TOPIC_PARTITION).glob("*.log"))


def _require_space(root: Path, workload: Workload) -> None:
    records = workload.batches * workload.records_a_batch
    wanted = records * (workload.value_bytes + BYTES_A_RECORD) * LOGS_AT_ONCE
    free = shutil.disk_usage(root).free
    if free < wanted:
        raise BenchError(
            f"{root}: {workload.name} needs {wanted / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "--scratch names another place"
        )


@contextmanager
def fresh_copy(scratch: Scratch, source: Path) -> Iterator[Path]:
    """Make a copy to be cleaned, in the page cache. This process may have other children."""
    target = scratch.copies / "log"
    subprocess.run(copy_command(source, target), check=True)
    read_through(target)
    try:
        yield target
    finally:
        shutil.rmtree(target)


def copy_command(source: Path, target: Path) -> list[str]:
    return ["cp", "-r", str(source), str(target)]


def read_through(root: Path) -> None:
    """Read every file once, by name, as the oracle does with Kafka's copies.

    A kernel may take pages out of the cache before the last of a long log is copied.
    """
    buffer = bytearray(1 << 20)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def settle() -> None:
    """Let what earlier turns wrote reach the disk, so that none pays for another."""
    os.sync()
