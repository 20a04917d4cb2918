"""Another process that takes a lock as a broker does, and holds it until its input ends."""

import sys
from pathlib import Path

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
