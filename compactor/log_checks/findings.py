"""Findings: what is not as it should be in a log directory, and where it was noticed."""

from typing import NamedTuple

from compactor.reason_codes import ReasonCode, reason_code_of
from storage.errors import CorruptFileError


class Finding(NamedTuple):
    """Something that is not as it should be, and where it was noticed."""

    path: str
    position: int
    problem: str
    reason_code: ReasonCode = ReasonCode.DAMAGED

    def __str__(self) -> str:
        return f"{self.path}, byte {self.position}: {self.problem}"


def difference(path: str, position: int, problem: str) -> Finding:
    """Something that is not as it was before, or as it was said to be."""
    return Finding(path, position, problem, ReasonCode.DIFFERS)


def unexplained(path: str, position: int, problem: str) -> Finding:
    """Return a finding of something that is gone without evidence of why."""
    return Finding(path, position, problem, ReasonCode.UNEXPLAINED)


def finding_of(error: CorruptFileError | OSError, path: str = "", then: str = "") -> Finding:
    """What an error says. path: where an error of the system names none. then: what it led to."""
    code = reason_code_of(error)
    if isinstance(error, CorruptFileError):
        return Finding(error.path, error.position, f"{error.problem}{then}", code)
    problem = f"cannot be read: {error.strerror}{then}"
    return Finding(str(error.filename or path), 0, problem, code)
