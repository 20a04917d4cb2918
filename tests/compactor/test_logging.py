"""Events go to `logging`, which nothing configures; the command line shows none of them twice."""

import logging
import subprocess
import sys
import threading

import pytest

from compactor.api.progress import Progress, watch_changes
from storage.log.errors import KafkaError
from storage.log.scheduler import BackgroundScheduler
from tests.storage.log.test_log_manager import T0, Broker

IMPORTED = """
import logging
import compactor, compactor.api
from compactor import Log, LogManager, run, plan, verify
loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
ours = [l for l in loggers if getattr(l, "name", "").split(".")[0] in ("root", "compactor")]
names = {l.name for l in ours}
assert {"compactor.log_manager"} <= names, names
assert [l for l in ours if l.handlers or l.disabled or not l.propagate] == []
assert {l.name for l in ours if l.level} == {"root"}
"""


def test_an_import_configures_nothing() -> None:
    subprocess.run([sys.executable, "-c", IMPORTED], check=True)


def records(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_call_tells_its_stages_and_messages(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Progress] = []
    with caplog.at_level(logging.DEBUG, "compactor"), watch_changes(seen.append) as progress:
        progress.stage("scan", 7)
        progress.advance(3)
        progress.swapped(2)
        progress.message("no room for 100 %s")
        progress.message("t-0: set aside", "t-0")
    assert records(caplog) == [
        ("INFO", "scan begins"),
        ("DEBUG", "2 segment groups are swapped in"),
        ("INFO", "no room for 100 %s"),
        ("WARNING", "t-0: set aside"),
    ]
    assert {record.name for record in caplog.records} == {"compactor.api"}
    assert len(seen) == 5


def test_a_manager_tells_of_its_start_and_of_directories_that_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker("/a", "/b")
    with caplog.at_level(logging.INFO, "compactor"):
        with broker.manager() as manager:
            manager.create(T0)
            manager.delete(T0)
            manager.delete(T0)  # which is not there any more
        broker.unreadable = "/b"
        broker.manager().start()
    assert records(caplog) == [
        ("INFO", "0 logs of 2 log directories are loaded"),
        ("INFO", "t-0 is out of use"),
        ("INFO", "the log manager is closed"),
        ("ERROR", "/b: offline: [Errno 5] Input/output error: '/b'"),
        ("INFO", "0 logs of 1 log directories are loaded"),
    ]
    assert {record.name for record in caplog.records} == {"compactor.log_manager"}


def test_a_task_that_fails_in_the_background_is_told_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise KafkaError("disk")

    last = threading.Event()
    with BackgroundScheduler() as scheduler:
        scheduler.schedule_once(fail, 1)
        scheduler.schedule_once(last.set, 2)
        assert last.wait(60)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (
        "ERROR",
        "a task in the background failed: disk",
    )
    assert record.exc_info is not None and record.exc_info[0] is KafkaError
