"""Loads Spark's Python daemon while Java starts, and hands it over when Java asks for one.

1. The driver starts the prestarted daemon beside Java; it loads what tasks need, then waits.
2. Java starts the daemon that its option names (`worker_daemon`). That one finds the prestarted one
   by a socket in the run's work directory, which only this user can enter, and passes its standard
   streams, environment and arguments on.
3. The prestarted daemon takes its place, unless it was loaded under other variables than Java's;
   then, or if there is none, the one that Java has started loads everything itself.
4. The one that Java has started stays, since Java watches it, and ends when the other does.

No process is left: until step 3 the prestarted daemon's standard input is a pipe from the driver,
and afterwards it is Java's; when it is closed, by whatever ends the other side, the daemon ends.
"""

import array
import json
import os
import selectors
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

SOCKET_VARIABLE = "COMPACTOR_EARLY_DAEMON"
TAKEN = b"1"
STANDARD_STREAMS = (0, 1, 2)

MODULES = "PYTHONPATH"  # in Java's, Spark's own places come before
# Read by Spark's worker when it runs; no library looks at them as it loads.
OF_SPARK = ("SPARK_", "PYTHON_", "_PYSPARK_")


def adopt(environ: Mapping[str, str]) -> bool:
    """Hand this process's streams to the prestarted daemon, and wait until it ends.

    Return False if there is none, or if it was loaded under other variables.
    """
    path = environ.get(SOCKET_VARIABLE)
    if path is None:
        return False
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            streams = array.array("i", STANDARD_STREAMS)
            connection.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
            connection.sendall(json.dumps([dict(environ), sys.argv, sys.path]).encode())
            connection.shutdown(socket.SHUT_WR)
            taken = connection.recv(len(TAKEN)) == TAKEN
        except OSError:  # it has ended: no prestarted daemon is needed for the work
            return False
        if not taken:
            return False
        for stream in STANDARD_STREAMS[:2]:
            os.close(stream)  # or Java would not see that the other has ended
        connection.recv(1)  # until it has
    return True


def wait_and_serve(listening: socket.socket, load: Callable[[], None]) -> bool:
    """Load, wait, and take over; return whether the place of Java's daemon was taken.

    If not, the driver has closed standard input, or Java's daemon loads everything itself.
    """
    with _ending_with_input():
        load()
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(listening, selectors.EVENT_READ)
        ready = {key.fd for key, _ in selector.select()}
    if 0 in ready:
        return False
    connection, _ = listening.accept()
    listening.close()
    _, streams, _, _ = socket.recv_fds(connection, 1, len(STANDARD_STREAMS))
    with connection.makefile("rb") as told:
        environ, argv, path = json.loads(told.read())
    if len(streams) < len(STANDARD_STREAMS) or not is_same(os.environ, environ):
        return False
    for target, stream in zip(STANDARD_STREAMS, streams, strict=True):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv, sys.path[:] = argv, path
    connection.sendall(TAKEN)
    descriptor = connection.detach()  # open until this process ends: so long does the other stay
    os.register_at_fork(after_in_child=lambda: os.close(descriptor))
    return True


@contextmanager
def _ending_with_input() -> Iterator[None]:
    """End this process as soon as standard input is closed; leave no thread: it will fork."""
    awake, wake = os.pipe()

    def watch() -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(awake, selectors.EVENT_READ)
            if 0 in {key.fd for key, _ in selector.select()}:
                os._exit(0)

    thread = threading.Thread(target=watch, name="input", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(wake)
        thread.join()
        os.close(awake)


def is_same(loaded: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether what was loaded under some variables is what others would have loaded."""
    places = f"{os.pathsep}{loaded.get(MODULES, '')}{os.pathsep}"
    if places not in f"{os.pathsep}{wanted.get(MODULES, '')}{os.pathsep}":
        return False
    return _that_count(loaded) == _that_count(wanted)


def _that_count(environ: Mapping[str, str]) -> dict[str, str]:
    ignored = {MODULES, SOCKET_VARIABLE}
    return {
        name: value
        for name, value in environ.items()
        if name not in ignored and not name.startswith(OF_SPARK)
    }


if __name__ == "__main__":
    from cleaner_jobs.spark.worker_daemon import load, serve

    if wait_and_serve(socket.socket(fileno=int(sys.argv[1])), load):
        serve()
