"""Many cases, in processes of their own: one that dies is a finding, and the others go on."""

import mmap
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct
from typing import NamedTuple
from unittest import mock

from tests.bounds.cases import SMALL, Case
from tests.bounds.guarded import Fences, all_kernels
from tests.bounds.made_batches import written_by_kafka

NOTE = Struct("<Q64s")  # the case that is at work, and the kernel that it is in


class Fault(NamedTuple):
    """A case that ended as none may."""

    seed: int
    told: str


class Counted(NamedTuple):
    cases: int
    endings: Counter[tuple[str, str]]
    kernels: frozenset[str]  # that were called
    faults: tuple[Fault, ...]


def run(first_seed: int, cases: int, kafkas: bool) -> Counted:
    """Cases with consecutive seeds. kafkas: as of Case."""
    if kafkas:
        written_by_kafka()  # unpacked once, not in each process
    endings: Counter[tuple[str, str]] = Counter()
    kernels: set[str] = set()
    faults: list[Fault] = []
    seed, end = first_seed, first_seed + cases
    while seed < end:
        seed, found = _run_until_one_dies(seed, end, kafkas)
        for line in found:
            kind, *values = line.split("\t")
            if kind == "ending":
                endings[values[0], values[1]] += int(values[2])
            elif kind == "kernel":
                kernels.add(values[0])
            else:
                faults.append(Fault(int(values[0]), values[1]))
    return Counted(cases, endings, frozenset(kernels), tuple(faults))


def _run_until_one_dies(seed: int, end: int, kafkas: bool) -> tuple[int, list[str]]:
    """In a process of its own; the seed to go on with, and what it told."""
    note = mmap.mmap(-1, NOTE.size)
    with tempfile.TemporaryDirectory() as scratch:
        told = Path(scratch, "told")
        child = os.fork()
        if not child:
            _work(range(seed, end), kafkas, Path(scratch), note)
        _, status = os.waitpid(child, 0)
        lines = told.read_text().splitlines() if told.exists() else []
        if not os.waitstatus_to_exitcode(status):
            return end, lines
        seed, kernel = NOTE.unpack(note)
        died = signal.strsignal(-os.waitstatus_to_exitcode(status)) or "died"
        where = kernel.rstrip(b"\0").decode()
        return seed + 1, [*lines, f"fault\t{seed}\t{died} in {where}"]


def _work(seeds: range, kafkas: bool, scratch: Path, note: mmap.mmap) -> None:
    """In the child: never returns."""
    code = 1
    try:
        with (scratch / "told").open("w") as told:
            fences = _NotingFences(note)
            for module, name in SMALL:
                mock.patch.object(module, name, SMALL[module, name]).start()
            with all_kernels(fences):
                for seed in seeds:
                    fences.begin(seed)
                    for line in _lines(seed, kafkas, scratch / "case"):
                        told.write(line + "\n")
                    told.flush()  # what is told before one dies counts
                for name in sorted(fences.called):
                    told.write(f"kernel\t{name}\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _lines(seed: int, kafkas: bool, root: Path) -> Iterator[str]:
    root.mkdir()
    try:
        for stage, ending in Case(seed, root, kafkas).endings():
            yield f"ending\t{stage}\t{ending}\t1"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        yield f"fault\t{seed}\t{error!r} at {Path(where.filename).name}:{where.lineno}"
    finally:
        shutil.rmtree(root)


class _NotingFences(Fences):
    """Fences that write down, for whoever finds the process dead, where it was."""

    def __init__(self, note: mmap.mmap) -> None:
        super().__init__(Random(0))
        self._note = note
        self._seed = 0
        self.called: set[str] = set()

    def begin(self, seed: int) -> None:
        self._seed = seed
        self._chance = Random(seed)

    def call(self, kernel: object, arguments: tuple[object, ...]) -> object:
        name = kernel.__name__  # type: ignore[attr-defined]
        self.called.add(name)
        NOTE.pack_into(self._note, 0, self._seed, name.encode())
        return super().call(kernel, arguments)
