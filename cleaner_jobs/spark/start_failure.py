"""Why Spark did not start, in one line: of the error, and of what Java wrote before it ended."""

import re
from itertools import pairwise
from pathlib import Path

_COMPLAINT = re.compile(r"error|exception|not found|unable|cannot|must ", re.IGNORECASE)
# Of Java and of Spark's log: they go on behind it.
_WARNING = re.compile(r"\[warning\]|VM warning:|^WARNING:|\bWARN\b|^Picked up |^:: |^\t")
_JAVA_CLASS = re.compile(r'^(Exception in thread "[^"]*" )?([\w$]+\.)+[\w$]+(Exception|Error): ')
# With the cause in the line behind the first one, and before the second one.
_NO_MACHINE = "Error occurred during initialization of VM"
_NO_MACHINE_CREATED = "Error: Could not create the Java Virtual Machine."


def cause_of_no_start(error: Exception, log_path: Path) -> str:
    """One line for the operator: Java's own words if it left any, or else Python's."""
    java_exception = getattr(error, "java_exception", None)
    if java_exception is not None:
        message = java_exception.toString()
    elif isinstance(error, OSError) and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = _complaint(log_path) or str(error)
    first = next(filter(str.strip, message.splitlines()), type(error).__name__)
    if "stopped SparkContext" in first:  # what follows when it gave up in the background
        return "the master does not answer"
    return _JAVA_CLASS.sub("", first.strip()).removesuffix(".")


def _complaint(log_path: Path) -> str | None:
    """What Java wrote before it ended; its virtual machine says it in two lines."""
    try:
        lines = log_path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for before, line in pairwise(lines):
        if before == _NO_MACHINE or line == _NO_MACHINE_CREATED:
            return f"{before}: {line}"
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    return next((line for line in complaints if not _WARNING.search(line)), None)
