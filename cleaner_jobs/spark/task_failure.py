"""Why Spark lost a task, in one line: of the stacks of Java and Python that come with it. Pure.

What Spark says of a job that failed begins with the call that Python made; the task's own message
comes after its host, and then the stack of whatever it called.
"""

import re
from typing import NamedTuple

_LOST_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor (\S+)\): ")
_WORKER_ENDED = re.compile(r"^Error from python worker:\n((?:[ \t]+\S.*\n)+)", re.MULTILINE)
_RAISED = re.compile(r"^(\w[\w.]*(?:Error|Exception|Exit)\b.*)$", re.MULTILINE)
# What Java throws at a call itself: the last is the root of the others.
_THROWN = re.compile(
    r"^(?:: |Caused by: )((?:[\w$]+\.)+[\w$]+(?:Exception|Error)\b.*)$", re.MULTILINE
)
_JAVA_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ")
# Where Java speaks to a worker, or to the daemon that they come from, and the other end has gone.
_LOST_PYTHON = re.compile(
    r"^(?:Caused by: )?java\.(?:io\.EOFException|nio\.channels\.\w*Close\w*Exception"
    r"|(?:io\.IOException|net\.\w+): (?:Stream closed|Broken pipe|Connection re(?:set|fused)))"
    r"\b.*\n"
    r"(?:\tat (?!org\.apache\.spark\.).*\n)*\tat org\.apache\.spark\.api\.python\.",
    re.MULTILINE,
)
_CALL = "An error occurred while calling "
PYTHON_DIED = "its Python process died"


class TaskFailure(NamedTuple):
    host: str  # as Spark has it; "" where it does not say, or tasks are the driver's
    cause: str


def task_failure(text: str) -> TaskFailure:
    """Return what the text of a failed job says of the task that it failed for."""
    lost = _LOST_TASK.search(text)
    if lost is None:
        return TaskFailure("", failure_cause(text))
    host = "" if lost[2] == "driver" else lost[1]
    return TaskFailure(host, failure_cause(text[lost.end() :]))


def failure_cause(message: str) -> str:
    """Return the cause in the message of one task."""
    if "Python worker exited unexpectedly" in message or _LOST_PYTHON.search(message):
        return PYTHON_DIED
    worker = _WORKER_ENDED.search(message)
    if worker:
        return worker[1].splitlines()[-1].strip()
    raised: list[str] = _RAISED.findall(message)
    if not raised and message.startswith(_CALL):  # what Python raised counts before Java's words
        raised = _THROWN.findall(message)
    first = next(filter(str.strip, message.splitlines()), "it does not say why")
    return _JAVA_CLASS.sub("", raised[-1] if raised else first).strip()
