"""Workers of the local engine whose file operations are passed to a test, one at a time.

In a worker `FileOperations` comes between tasks and the system as it does in this process, and asks
here before each operation, and says when it is done. Until then no other process and no thread that
the test watches does one: what the test sees is the order in which things came about.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from cleaner_jobs.local.worker_pool import Workers
from tests.support.file_operations import FileOperations, Operation
from tests.support.prepared_host import prepared_workers

ROOT, KINDS, ADDRESS = "WATCHED_ROOT", "WATCHED_KINDS", "WATCHED_BY"
_FOR_EVER = ExitStack()  # what ends with its process


@contextmanager
def watched_workers(
    root: Path,
    kinds: Collection[str],
    doing: Callable[[Operation], AbstractContextManager[None]],
    processes: int,
) -> Iterator[Workers]:
    """Yield workers; `doing` is entered while one does an operation of these kinds below root."""
    with Listener(family="AF_UNIX") as listener:
        asking = threading.Thread(target=_answer_all, args=(listener, doing), daemon=True)
        asking.start()
        environ = {ROOT: str(root), KINDS: " ".join(kinds), ADDRESS: str(listener.address)}
        with prepared_workers(watch, environ, processes) as workers:
            yield workers


def _answer_all(
    listener: Listener, doing: Callable[[Operation], AbstractContextManager[None]]
) -> None:
    with suppress(OSError):  # the listener is closed
        while True:
            threading.Thread(target=_answer, args=(listener.accept(), doing), daemon=True).start()


def _answer(
    connection: Connection, doing: Callable[[Operation], AbstractContextManager[None]]
) -> None:
    with connection, suppress(EOFError):  # the worker has ended
        while True:
            with doing(Operation(*connection.recv())):
                connection.send(None)
                connection.recv()  # it is done
            connection.send(None)


def watch() -> None:
    """Ask before each operation of the processes that this one forks."""
    connections: dict[int, Connection] = {}  # by process

    def ask(operation: Operation) -> None:
        if os.getpid() not in connections:
            connections[os.getpid()] = Client(os.environ[ADDRESS])
        connections[os.getpid()].send(tuple(operation))
        connections[os.getpid()].recv()

    def done(_: Operation) -> None:
        connections[os.getpid()].send(None)
        connections[os.getpid()].recv()

    kinds = os.environ[KINDS].split()
    operations = FileOperations(Path(os.environ[ROOT]), ask, done, kinds)
    _FOR_EVER.enter_context(operations.listening())
