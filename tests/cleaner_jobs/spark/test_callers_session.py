"""Sessions that are handed in and can do no job: words, and no error of another library."""

from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.spark.callers_session import why_unusable
from compactor import api
from tests.compactor.small_log import build


class Java:
    """What a SparkContext has of its Java."""

    def __init__(self, stopped: bool | Exception) -> None:
        self.stopped = stopped

    def sc(self) -> "Java":
        return self

    def isStopped(self) -> bool:  # noqa: N802 - as Spark has it
        if isinstance(self.stopped, Exception):
            raise self.stopped
        return self.stopped


class Context:
    def __init__(self, java: Java | None) -> None:
        self._jsc = java


class Session:
    def __init__(self, java: Java | None) -> None:
        self.sparkContext = Context(java)


class ConnectSession:
    """Its module is what tells it apart."""

    __module__ = "pyspark.sql.connect.session"


UNUSABLE = [
    (Session(None), "was stopped"),
    (Session(Java(True)), "was stopped"),
    (Session(Java(ConnectionRefusedError())), "has lost its Java process"),
    (ConnectSession(), "is one of Spark Connect"),
    ("local", "expected a SparkSession, not str"),
    (object(), "expected a SparkSession, not object"),
]


@pytest.mark.parametrize(("session", "words"), UNUSABLE, ids=[words for _, words in UNUSABLE])
@pytest.mark.parametrize("in_process", [False, True])
def test_a_session_that_can_do_no_job_is_refused_in_words(
    tmp_path: Path, session: Any, words: str, in_process: bool
) -> None:
    log_dir = str(build(tmp_path / "log").parent)
    for call in (
        lambda: api.run([log_dir], options=api.RunOptions(session=session, in_process=in_process)),
        lambda: api.inspect(
            [log_dir], options=api.InspectOptions(session=session, in_process=in_process)
        ),
    ):
        with pytest.raises(api.ConfigError, match=rf"^options\.session: {words}"):
            call()


def test_a_session_that_works_is_used() -> None:
    assert why_unusable(Session(Java(False))) is None
