"""The operator has Spark run and inspect, unless the options name an engine or a master."""

import json
import subprocess
import sys

import pytest

from tests.compactor.test_airflow_folder import LOADED

WORDS = """
import json
given = json.loads(sys.stdin.read())
operator = airflow.CompactorOperator(
    log_dirs=["/data"], command=given["command"], options=given["options"]
)
print(json.dumps(operator._words()))
"""


@pytest.mark.parametrize(
    ("command", "options", "engine"),
    [
        ("run", [], ["--engine", "spark"]),
        ("inspect", ["--top", "3"], ["--engine", "spark"]),
        ("run", ["--engine", "local"], []),
        ("run", ["--engine=local"], []),
        ("run", ["--master", "spark://host:7077"], []),
        ("plan", [], []),
        ("log read", [], []),
    ],
)
def test_the_engine_is_spark_unless_the_options_decide(
    command: str, options: list[str], engine: list[str]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED + WORDS],
        input=json.dumps({"command": command, "options": options}),
        capture_output=True,
        text=True,
        check=True,
    )
    before = ["compactor", *command.split(), "/data"]
    assert json.loads(ended.stdout) == [*before, *engine, *options]
