"""Another process that takes a lock as a broker does, and holds it until its input ends."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.command_process import PROJECT

_HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[-1], os.O_RDWR | os.O_CREAT)
try:
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
    sys.exit()
print("locked", flush=True)
sys.stdin.read()
"""


def holding(path: Path, name: str | None = None) -> list[str]:
    """The command of one; its first line of output says locked or refused. name: of its command."""
    return [sys.executable, "-c", _HOLD, *([name] if name else []), str(path)]


@contextmanager
def held_by_another(module: str, call: str) -> Iterator[None]:
    """A process that holds what a call of ours takes, as long as it is entered."""
    program = (
        f"import sys; from {module} import {call.partition('(')[0]}\n"
        f"with {call}: print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.stdin.close()
        assert holder.wait() == 0
