"""Checks of `doctor`: what was seen of one thing, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple

from compactor.log_dirs.preconditions import RunEnding
from compactor.outcome.json_values import OF_ENDING, summary_property, written


class Grade(StrEnum):
    """How it stands, the worst last."""

    OK = "ok"
    WARN = "warn"  # a run works, but not as well as it might, or not everywhere
    FAIL = "fail"  # a run would not work or be refused, or a broker's start would fail or lose data


class Check(NamedTuple):
    """One thing that was looked at."""

    subject: str
    grade: Grade
    found: str  # without a full stop
    advice: str | None = None  # what to do: sentences; a command has a line, after two blanks


class CheckedLogDir(NamedTuple):
    path: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Checkup:
    """All that was looked at: the machine, then each log directory, then what else a run needs."""

    JSON_NAMES: ClassVar = ("counts", "ending", "machine", "log_dirs", "run")

    machine: tuple[Check, ...]
    log_dirs: tuple[CheckedLogDir, ...] = field(metadata=OF_ENDING)
    run: tuple[Check, ...] = ()  # what is in its way beside
    ending: RunEnding | None = field(  # of a run on all of them; None: no log directory was given
        default=None,
        metadata=written(name="run_would_end", is_of_ending=True, is_in_summary=True),
    )

    @property
    @summary_property
    def counts(self) -> dict[Grade, int]:
        """How many checks there are of each grade."""
        return count(self.checks)

    @property
    def is_fit(self) -> bool:
        """Whether no check failed."""
        return not self.counts[Grade.FAIL]

    @property
    def checks(self) -> tuple[Check, ...]:
        of_log_dirs = (check for _, checks in self.log_dirs for check in checks)
        return (*self.machine, *of_log_dirs, *self.run)


def ok(subject: str, found: str) -> Check:
    return Check(subject, Grade.OK, found)


def warn(subject: str, found: str, advice: str) -> Check:
    return Check(subject, Grade.WARN, found, advice)


def fail(subject: str, found: str, advice: str | None = None) -> Check:
    """Return a failed check. advice: None where `found` says what to do itself."""
    return Check(subject, Grade.FAIL, found, advice)


def with_command(sentence: str, command: str) -> str:
    """Return advice that ends with a command, in a line of its own."""
    return f"{sentence}\n  {command}"


def count(checks: Iterable[Check]) -> dict[Grade, int]:
    """Count the checks of each grade."""
    grades = [check.grade for check in checks]
    return {grade: grades.count(grade) for grade in Grade}
