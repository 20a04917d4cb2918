"""Many batches appended by one call, with one write for as many as are plain.

Each is checked, gets its offsets, and is indexed as if it were appended by itself; what there is
then in memory is the same, and so is what a flush leaves in the files. Batches that are not plain
(`plain_append`) are appended one by one. Spec L-13, L-14, L-18.
"""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import overload

import numpy as np
from numpy.typing import NDArray

from storage.log.appending import AppendRequest, LogAppendInfo
from storage.log.batches import Bytes, in_memory
from storage.log.errors import LogError
from storage.log.plain_append import PlainAppends, Run, info_of
from storage.log.scratch import scratch

_FIRST_WINDOW_BYTES, _WINDOW_BYTES = 1 << 15, 1 << 18  # as much as a processor keeps near

Int64Array = NDArray[np.int64]
AppendOne = Callable[[bytes, AppendRequest], LogAppendInfo]


class AppendedBatches(Sequence[LogAppendInfo]):
    """What came of each batch, in order, as an append by itself would have told it."""

    def __init__(self) -> None:
        self._parts: list[LogAppendInfo | tuple[Int64Array, int]] = []
        self._starts: list[int] = []  # the number of the first batch of each part
        self._count = 0

    def add(self, info: LogAppendInfo) -> None:
        """Of one more."""
        self._add(info, 1)

    def add_taken(self, batches: Int64Array, log_start: int) -> None:
        """Of some more, as rows of append_kernel.TakenBatch, which are copied."""
        self._add((batches.copy(), log_start), len(batches))

    def _add(self, part: LogAppendInfo | tuple[Int64Array, int], count: int) -> None:
        self._parts.append(part)
        self._starts.append(self._count)
        self._count += count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> LogAppendInfo: ...
    @overload
    def __getitem__(self, number: slice) -> list[LogAppendInfo]: ...
    def __getitem__(self, number: int | slice) -> LogAppendInfo | list[LogAppendInfo]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(self._count))]
        at = number + self._count if number < 0 else number
        if not 0 <= at < self._count:
            raise IndexError(number)
        place = int(np.searchsorted(self._starts, at, "right")) - 1
        part = self._parts[place]
        if isinstance(part, LogAppendInfo):
            return part
        rows, log_start = part
        return info_of(rows[at - self._starts[place]].tolist(), log_start)

    def __iter__(self) -> Iterator[LogAppendInfo]:
        for part in self._parts:
            if isinstance(part, LogAppendInfo):
                yield part
            else:
                rows, log_start = part
                yield from (info_of(row, log_start) for row in rows.tolist())


class BatchAppendError(LogError):
    """One of several batches was refused, or could not be written; those before it are appended.

    cause: what an append of it by itself raises. number: of the batch, from 0 on; where entries of
    many batches could not be put in the index files, of the first one since the last write to the
    `.log`. position: where it begins in what was to be appended. appended: what came of those
    before.
    """

    def __init__(
        self, cause: LogError, number: int, position: int, appended: AppendedBatches
    ) -> None:
        super().__init__(cause, number, position, appended)
        self.cause, self.number, self.position, self.appended = cause, number, position, appended

    def __str__(self) -> str:
        return f"batch {self.number}, at byte {self.position}: {self.cause}"


class BatchAppends:
    """One call, under the log's lock."""

    def __init__(self, plain: PlainAppends, append_one: AppendOne, how: AppendRequest) -> None:
        """append_one: as Log.append_as_leader."""
        self._plain, self._append_one, self._how = plain, append_one, how
        self._done = AppendedBatches()
        self._at = 0  # behind what is appended

    def append(self, data: Bytes) -> AppendedBatches:
        """Append all whole batches. Raise BatchAppendError at the first that is refused."""
        view, window = memoryview(data), _FIRST_WINDOW_BYTES
        try:
            while self._at < len(view):
                if self._append_window(view[self._at : self._at + window]):
                    window = min(4 * window, _WINDOW_BYTES)
                    continue
                batch = next(in_memory(view[self._at :]), None)
                if batch is None:  # cut short
                    break
                size = batch.size_bytes
                one = bytes(view[self._at : self._at + size])
                self._done.add(self._append_one(one, self._how))
                self._at += size
                window = max(_FIRST_WINDOW_BYTES, min(4 * size, _WINDOW_BYTES))
        except LogError as error:
            raise BatchAppendError(error, len(self._done), self._at, self._done) from error
        return self._done

    def _append_window(self, part: memoryview) -> bool:
        """Append what is plain at the beginning of some bytes; whether there was any."""
        plain, before = self._plain, self._at
        kernels = plain.kernels_for(len(part), self._how)
        if kernels is None:
            return False
        room = scratch()
        room.put(part)
        plain.producers.forget()
        run = Run(room=room, start=0, end=len(part), is_alone=False, how=self._how)
        while run.start < run.end:
            self._append_run(kernels, run, before)
            after = run._replace(start=self._at - before)
            if after.start == run.start and not plain.producers.put_of(room, run.start, run.end):
                break
            run = after
        return self._at > before

    def _append_run(self, kernels: ModuleType, run: Run, begins_at: int) -> None:
        """Append the plain batches from the start of a run on. begins_at: where the room does."""
        plain, taken = self._plain, run.room.batches
        reached, count = plain.run(kernels, run)
        if reached == kernels.DONE:
            self._note(taken[: count - 1], begins_at)
            plain.follow(run.room, count)
            self._note(taken[count - 1 : count], begins_at)
            return
        for number in range(count):
            plain.go_on(run.room, number, self._how.leader_epoch)
            self._note(taken[number : number + 1], begins_at)

    def _note(self, batches: Int64Array, begins_at: int) -> None:
        if not len(batches):
            return
        self._done.add_taken(batches, self._plain.log_start)
        self._at = begins_at + int(batches[-1, 1])
