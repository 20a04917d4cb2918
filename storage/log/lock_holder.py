"""Who holds a POSIX record lock, in words: the process and its command, as far as is known.

The kernel names the process to whoever asks for its lock (F_GETLK), and /proc the command. Of a
process in another container, or on another host, neither is known.
"""

import fcntl
import os
import re
import sys
from datetime import UTC, datetime
from struct import Struct

from storage.files.filesystem import read_bytes

_FLOCK = Struct("@hhqqi4x")  # of Linux: type, whence, start, length, process
_START_TIME = 19  # among the fields of /proc/…/stat behind the command, which are 3 to 52
_LONGEST = 100  # characters of a command
_TAKES_A_VALUE = ("-cp", "-classpath", "--class-path", "-p", "--module-path", "-m", "-c")
_SECRET = re.compile(r"(?i)(pass|secret|token|credential)[^=]*=")


def is_locked(descriptor: int) -> bool:
    """Whether another process holds a lock on an open file. On another system than Linux: False."""
    return _asked(descriptor) is not None


def holder_of(descriptor: int) -> str | None:
    """Like `process 4711 (java kafka.Kafka server.properties), which runs since
    2026-11-23T03:00:00Z`; None where it is not known.
    """
    process = _asked(descriptor)
    if process is None or process <= 0:
        return None
    try:
        words = read_bytes(f"/proc/{process}/cmdline").split(b"\0")[:-1]
    except OSError:  # it has ended, or is another user's whose commands are hidden
        return f"process {process}"
    command = shown_command([os.fsdecode(word) for word in words])
    named = f"process {process} ({command})" if command else f"process {process}"
    began = _began(process)
    return named if began is None else f"{named}, which runs since {began}"


def _began(process: int) -> str | None:
    """When a process began, as an ISO time; None where the system does not say."""
    try:
        fields = read_bytes(f"/proc/{process}/stat").rpartition(b")")[2].split()
        boot = re.search(rb"^btime (\d+)$", read_bytes("/proc/stat"), re.MULTILINE)
    except OSError:
        return None
    if boot is None or len(fields) <= _START_TIME:
        return None
    ticks = int(fields[_START_TIME])
    began = datetime.fromtimestamp(int(boot[1]) + ticks // os.sysconf("SC_CLK_TCK"), UTC)
    return began.strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_command(words: list[str]) -> str:
    """A command without its options: what a person knows it by."""
    if not words:
        return ""
    kept, skip = [os.path.basename(words[0])], False
    for word in words[1:]:
        if skip or word.startswith("-"):
            skip = word in _TAKES_A_VALUE
        elif not _SECRET.search(word):
            kept.append(word)
    text = " ".join(kept)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _asked(descriptor: int) -> int | None:
    """The process that holds a lock; None: nobody else does. 0 or less: one that is not known."""
    if not sys.platform.startswith("linux"):  # where the answer may be laid out otherwise
        return None
    wanted = _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
    kind, *_, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    return None if kind == fcntl.F_UNLCK else process
