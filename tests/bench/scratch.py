"""Where logs are kept between runs, and copies of them made for each cleaning.

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

from tests.bench import measured
from tests.bench.errors import BenchError
from tests.bench.results import Sample

KAFKAS_COPIES = "bench*"  # as the oracle names them; a run that was stopped leaves one


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


def default_root() -> Path:
    """In the system's temporary directory, and this user's own."""
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
    """The log directory of this key; made if it is not there yet, whole or not at all."""
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


def time_copy(scratch: Scratch, source: Path) -> Sample:
    """What `cp -r` takes."""
    target = scratch.copies / "log"
    sample = measured.run_to_success(_copy_command(source, target)).sample
    shutil.rmtree(target)
    return sample


@contextmanager
def fresh_copy(scratch: Scratch, source: Path) -> Iterator[Path]:
    """A copy to be cleaned, in the page cache. This process may have other children."""
    target = scratch.copies / "log"
    subprocess.run(_copy_command(source, target), check=True)
    read_through(target)
    try:
        yield target
    finally:
        shutil.rmtree(target)


def _copy_command(source: Path, target: Path) -> list[str]:
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
