"""The scheduler with a thread: order, errors, and its end. No test waits for a time."""

import threading
from functools import partial

from storage.log.scheduler import BackgroundScheduler


def test_what_has_no_delay_is_done_by_the_caller() -> None:
    done: list[threading.Thread] = []
    with BackgroundScheduler() as scheduler:
        scheduler.schedule_once(lambda: done.append(threading.current_thread()))
        assert done == [threading.current_thread()]


def test_what_is_due_is_done_in_order_in_the_background() -> None:
    now_ns = [0]
    done: list[int] = []
    last = threading.Event()
    with BackgroundScheduler(clock_ns=lambda: now_ns[0]) as scheduler:
        for delay_ms in (3, 1, 2):
            scheduler.schedule_once(partial(done.append, delay_ms), delay_ms)
        scheduler.schedule_once(last.set, 4)
        assert done == []
        now_ns[0] = 4_000_000
        assert last.wait(60)
    assert done == [1, 2, 3]


def test_an_error_is_told_and_the_next_task_done() -> None:
    told: list[BaseException] = []
    last = threading.Event()

    def fail() -> None:
        raise ValueError("disk")

    with BackgroundScheduler(told.append) as scheduler:
        scheduler.schedule_once(fail, 1)
        scheduler.schedule_once(last.set, 2)
        assert last.wait(60)
    assert [str(error) for error in told] == ["disk"]


def test_what_is_not_due_when_it_is_closed_is_forgotten() -> None:
    done, before = list[int](), set(threading.enumerate())
    scheduler = BackgroundScheduler()
    scheduler.schedule_once(lambda: done.append(1), 3_600_000)
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["log-manager"]
    scheduler.close()
    scheduler.schedule_once(lambda: done.append(2), 1)
    assert done == []
    assert set(threading.enumerate()) <= before
