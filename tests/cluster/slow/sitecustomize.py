"""Makes the rewrite of a worker slow: found by its Python processes alone, as any site may.

What a rewriting task writes trickles, as long as the file SLOW_BRAKE is there: at a byte a time no
piece of a test's log ends before the brake is off. Each byte is noted in `trace` beside it. Product
code knows nothing of it.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

MODULE = "cleaner_jobs.tasks.batch_rewriter"
PAUSE_SECONDS = 0.02
BRAKE = os.environ["SLOW_BRAKE"]
TRACE = os.path.join(os.path.dirname(BRAKE), "trace")


class Trickle:
    """A file of which every write takes its time."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, data: memoryview) -> int:
        view, done = memoryview(data).cast("B"), 0
        while done < len(view) and os.path.exists(BRAKE):
            done += int(self._out.write(view[done : done + 1]))
            note(self._out.name)
            time.sleep(PAUSE_SECONDS)
        return done + int(self._out.write(view[done:]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def note(path: str) -> None:
    with open(TRACE, "a") as trace:
        trace.write(f"{time.time()} {os.getpid()} {path}\n")


class Loader(importlib.abc.Loader):
    """Loads the module, and puts a slow file in the place of each that it is given."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._real.create_module(spec)
        return made

    def exec_module(self, module: Any) -> None:
        self._real.exec_module(module)
        init = module.BatchRewriter.__init__

        def slow_init(self: Any, rules: Any, sink: Any, buffers: Any) -> None:
            init(self, rules, Trickle(sink) if hasattr(sink, "fileno") else sink, buffers)

        module.BatchRewriter.__init__ = slow_init


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None
        spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())
