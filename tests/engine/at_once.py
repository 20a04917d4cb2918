"""A script in which appends that follow one another are one call: `append_batches_as_leader`.

What Kafka tells of the last of them has to come of the call, and every state and file after it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from storage.files.files import Files
from storage.log.batches import in_memory
from storage.log.errors import LogError
from storage.log.log import Log
from storage.log.plain_append import AppendedBatches, BatchAppendError
from storage.log.producer_state_entry import SENTINEL
from storage.log.validation import AppendRequest
from tests.engine.replay.log_operations import LogOperations, _appended
from tests.engine.replay.replayed import replayed
from tests.engine.replay.script_values import Line, Values

LOOK_ALIKE = ("n", "resolved", "resolved.*")  # what is not compared: numbers of lines, and these
Sent = tuple[bytes, AppendRequest]


class AtOnce:
    """One script, and what of it is one call."""

    def __init__(self, script: Sequence[Line], expected: Sequence[Line]) -> None:
        """expected: what Kafka tells of each line."""
        self._script, self._expected = script, expected
        self._sent: dict[int, Sent] = {}  # by the identity of a line
        self.calls: list[int] = []  # how many batches each had

    def replayed(self, files: Files, one_by_one: str, at_once: str) -> list[Line]:
        """Do the script in one directory to see what is appended, and at once in another."""
        with self._appends(self._note):
            replayed(files, one_by_one, self._script)
        with self._appends(self._append_at_once):
            return replayed(files, at_once, [group[-1] for group in self._groups()])

    def kept(self) -> list[Line]:
        """What Kafka tells of the lines that are left."""
        of_line = {id(line): told for line, told in zip(self._script, self._expected, strict=True)}
        return [of_line[id(group[-1])] for group in self._groups()]

    def _groups(self) -> Iterator[list[Line]]:
        """Lines that are done at once; all but the last went well."""
        group: list[Line] = []
        for line, told in zip(self._script, self._expected, strict=True):
            if group and not self._follow(group[-1], line):
                yield group
                group = []
            group.append(line)
            if "error" in told:
                yield group
                group = []
        if group:
            yield group

    def _follow(self, before: Line, line: Line) -> bool:
        first, second = self._sent.get(id(before)), self._sent.get(id(line))
        return first is not None and second is not None and first[1] == second[1]

    # ---- the appends of a replay --------------------------------------------------------------

    @contextmanager
    def _appends(self, append: Any) -> Iterator[None]:
        real = LogOperations._append

        def replaced(operations: LogOperations, log: Log, values: Values, line: Line) -> Line:
            told: Line = append(real, operations, log, values, line)
            return told

        with mock.patch.object(LogOperations, "_append", replaced):
            yield

    def _note(
        self, real: Any, operations: LogOperations, log: Log, values: Values, line: Line
    ) -> Any:
        as_leader = Log.append_as_leader

        def noting(its: Log, data: bytes, request: AppendRequest) -> Any:
            if _is_one(data) and request.guard is SENTINEL:  # a guard is of one replay
                self._sent[id(line)] = data, request
            return as_leader(its, data, request)

        with mock.patch.object(Log, "append_as_leader", noting):
            return real(operations, log, values, line)

    def _append_at_once(
        self, real: Any, operations: LogOperations, log: Log, values: Values, line: Line
    ) -> Any:
        group = next((g for g in self._groups() if g[-1] is line), [])
        if not all(id(each) in self._sent for each in group) or not group:
            return real(operations, log, values, line)
        request = self._sent[id(line)][1]
        data = b"".join(self._sent[id(each)][0] for each in group)
        follows = operations._clock.follows_end
        done = appended(log, data, request, len(group), follows)
        self.calls.append(len(done))
        if follows:
            log.follow_end()
        return _appended(done[-1])


def appended(
    log: Log, data: bytes, request: AppendRequest, count: int, follows: bool
) -> AppendedBatches:
    """Append so many batches by one call; raise what the last of them is refused for.

    follows: the high watermark is to be where it would be behind each of those before.
    """
    try:
        done = log.append_batches_as_leader(data, request)
    except BatchAppendError as error:
        assert error.number == count - 1, f"{error}, of {count}"
        if follows and error.number:
            log.follow_end()
        refused = error.cause
    else:
        assert len(done) == count
        return done
    raise refused


def _is_one(data: bytes) -> bool:
    try:
        (batch,) = in_memory(data)
    except (ValueError, LogError):
        return False
    return batch.size_bytes == len(data)
