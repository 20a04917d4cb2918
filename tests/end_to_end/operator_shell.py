"""Commands as an operator types them: by a shell, at a terminal, below a directory of the test's.

Paths such as /data/kafka stand for others below that directory. A question is answered with yes.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.command_process import PROJECT

SECONDS = 300
# What stands in front of the name is the beginning of a word, or of a value in one.
PLACE = re.compile(r"(?<![\w./*])/(?=(?:data2?|backup|restore|mnt|etc|var)/)")


class Ended(NamedTuple):
    code: int
    said: str

    @property
    def words(self) -> str:
        """With one blank between any two: tables and lines are folded."""
        return " ".join(self.said.split())


class Shell(NamedTuple):
    root: Path  # in the place of /

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def run(self, line: str) -> Ended:
        """A line, in a directory of its own below the root; what goes to the terminal comes first.

        Standard output is a file: what it shows of a table is not cut at the terminal's width.
        """
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        ours, terminal = pty.openpty()
        os.write(ours, b"y\n")
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                ["bash", "-c", PLACE.sub(f"{self.root}/", line)],
                cwd=home,
                env={**os.environ, **_environment()},
                stdin=terminal,
                stdout=out,
                stderr=terminal,
                start_new_session=True,
            )
            shown = _shown(process, ours)
            os.close(ours)
            os.close(terminal)
            out.seek(0)
            return Ended(process.returncode, shown + out.read().decode())


def _shown(process: "subprocess.Popen[bytes]", terminal: int) -> str:
    """What a process shows until it has ended."""
    shown, deadline = b"", time.monotonic() + SECONDS
    has_ended = False
    while True:
        ready, _, _ = select.select([terminal], [], [], 0 if has_ended else 0.1)
        if ready:
            shown += os.read(terminal, 65536)
        elif has_ended:
            return shown.decode()
        has_ended = process.poll() is not None
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"it does not end:\n{shown.decode()}")


def _environment() -> dict[str, str]:
    programs = Path(sys.executable).parent  # not resolved: that of the virtual environment
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "COLUMNS": "200",
        "TERM": "dumb",
    }
