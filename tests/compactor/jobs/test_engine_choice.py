"""The engine is chosen by options, session, Java and size; what contradicts itself is refused."""

from typing import Any, cast

import pytest

from cleaner_jobs.spark.environment import SUBMITTED_VARIABLE
from compactor.errors import CleaningFailedError, ConfigError, UsageError
from compactor.jobs import engine_choice
from compactor.jobs.engine_choice import (
    SPARK_FROM_BYTES,
    choose_engine,
    require_possible_engine,
)
from compactor.settings.rules import EngineChoice, RunOptions, option_names

SESSION_OF_CALLER, WORKERS = cast("Any", object()), cast("Any", object())
SMALL, LARGE = SPARK_FROM_BYTES - 1, SPARK_FROM_BYTES


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """What there is: a usable Java, a session that nobody passed in, spark-submit."""
    there = {"java": True, "session": False}

    def find(_: object) -> None:
        if not there["java"]:
            raise CleaningFailedError("no Java")

    monkeypatch.setattr(engine_choice, "find_java", find)
    monkeypatch.setattr(engine_choice, "has_session", lambda: there["session"])
    monkeypatch.setattr(engine_choice, "why_unusable", lambda _: None)
    monkeypatch.delenv(SUBMITTED_VARIABLE, raising=False)
    return there


OF_LARGE = "1.1 GB of logs to read"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("options", "log_bytes", "choice", "why"),
    [
        (RunOptions(), SMALL, "local", "1.1 GB of logs to read, less than 1 GiB"),
        (RunOptions(), LARGE, "spark", OF_LARGE),
        (RunOptions(spark_from=2000), 1999, "local", "2.0 kB of logs to read, less than 2.0 kB"),
        (RunOptions(spark_from=2000), 2000, "spark", "2.0 kB of logs to read"),
        (
            RunOptions(spark_from=5 * SMALL),
            LARGE,
            "local",
            "1.1 GB of logs to read, less than 5.4 GB",
        ),
        (RunOptions(spark_from=0), 0, "spark", "0 B of logs to read"),
        (RunOptions(master="local[2]"), SMALL, "spark", "the master is local[2]"),
        (RunOptions(session=SESSION_OF_CALLER), SMALL, "spark", "a session was passed in"),
        (RunOptions(workers=WORKERS), LARGE, "local", "workers were passed in"),
        (RunOptions(in_process=True), LARGE, "local", "in this process"),
        (RunOptions(engine=EngineChoice.LOCAL), LARGE, "local", "as asked for"),
        (RunOptions(engine=EngineChoice.SPARK), SMALL, "spark", "as asked for"),
    ],
)
def test_the_engine_is_chosen_by_the_options_and_the_size(
    options: RunOptions, log_bytes: int, choice: str, why: str
) -> None:
    assert choose_engine(options, log_bytes) == (choice, why)


def test_without_java_it_is_local_whatever_the_size(machine: dict[str, bool]) -> None:
    machine["java"] = False
    found = choose_engine(RunOptions(), 1 << 50)
    assert found == ("local", "no Java that Spark runs on was found")


def test_under_spark_submit_it_is_spark(
    machine: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine["java"] = False  # Java runs already
    monkeypatch.setenv(SUBMITTED_VARIABLE, "12345")
    assert choose_engine(RunOptions(), 0) == ("spark", "started by spark-submit")


def test_a_session_that_was_not_passed_in_counts_as_none(machine: dict[str, bool]) -> None:
    """Below the threshold the call runs locally; above it, it is refused with both ways out."""
    machine["session"] = True
    require_possible_engine(RunOptions())
    assert choose_engine(RunOptions(), SMALL).choice == "local"
    with pytest.raises(ConfigError, match=r"session=….*engine=\"local\""):
        choose_engine(RunOptions(), LARGE)
    with pytest.raises(ConfigError, match=r"session=….*engine=\"local\".*Nothing was changed"):
        require_possible_engine(RunOptions(engine=EngineChoice.SPARK))


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            RunOptions(engine=EngineChoice.LOCAL, master="local[2]"),
            "--master: not with local processes, which --engine asks for",
        ),
        (RunOptions(workers=WORKERS, master="local[2]"), "--master"),
        (
            RunOptions(workers=WORKERS, engine=EngineChoice.SPARK),
            "--engine spark: not with workers",
        ),
    ],
)
def test_options_of_both_engines_contradict_each_other(options: RunOptions, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        require_possible_engine(options)
    assert raised.value.text(option_names()).startswith(message)
