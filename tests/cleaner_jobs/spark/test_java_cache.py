"""What Spark's launcher adds is kept, and used while it holds."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cleaner_jobs.spark import java_cache
from cleaner_jobs.spark.gateway import CONNECTION_VARIABLE, start_java
from cleaner_jobs.spark.java_cache import Launch

PROJECT = Path(__file__).parents[3]
PROBE = "tests.cleaner_jobs.spark.spark_probe"
STARTING_SECONDS = 300
LAUNCH = Launch("/spark/conf:/spark/jars/a.jar", ("--add-opens=java.base/java.lang=ALL-UNNAMED",))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    return {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "SPARK_HOME": str(tmp_path / "spark"),
        "JAVA_HOME": str(tmp_path / "java"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_a_launch_is_kept_for_the_same_java_and_jars(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assert java_cache.read_launch(environ) is None
    java_cache.save_launch(environ, LAUNCH)
    assert java_cache.read_launch(environ) == LAUNCH
    (tmp_path / "spark" / "jars" / "new.jar").touch()
    assert java_cache.read_launch(environ) is None
    java_cache.save_launch(environ, LAUNCH)
    assert len(list((tmp_path / "cache" / "log-compactor").iterdir())) == 1, "the older one is gone"
    environ["JAVA_HOME"] = str(tmp_path)
    assert java_cache.read_launch(environ) is None


@pytest.mark.parametrize("damage", ["", "[", "{}", "[1]", '["/a", "text", 3]'])
def test_a_damaged_file_is_as_none(damage: str, environ: dict[str, str]) -> None:
    java_cache.save_launch(environ, LAUNCH)
    Path(java_cache.launch_path(environ)).write_text(damage)
    assert java_cache.read_launch(environ) is None


def test_a_class_path_too_long_for_a_command_line_is_not_kept(environ: dict[str, str]) -> None:
    java_cache.save_launch(environ, LAUNCH._replace(class_path="/spark/a.jar:" * 10_000))
    assert java_cache.read_launch(environ) is None


def test_java_gets_our_options_and_those_of_the_launch(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        'echo "$@"\n'
        f'[ -d "{tmp_path}"/connection-* ] || exit 1\n'
        # port 258, then a secret of three bytes
        r"printf '\000\000\001\002\000\000\000\003abc'"
        f" > ${CONNECTION_VARIABLE}\n"
    )
    java.chmod(0o755)
    with (tmp_path / "log").open("wb") as log:
        environ = {**os.environ, "JAVA_HOME": str(tmp_path)}
        words = java_cache.command(LAUNCH, ["-Xmx1g"], environ)
        started = start_java(words, environ, log)
    assert sorted(os.listdir(tmp_path)) == ["bin", "log"]
    started.process.communicate()
    assert (started.port, started.secret) == (258, "abc")
    assert (tmp_path / "log").read_text() == (
        f"-Xmx1g -cp {LAUNCH.class_path} {LAUNCH.options[0]} {java_cache.MAIN_CLASS}\n"
    )


@pytest.mark.spark
def test_a_second_session_starts_without_the_launcher_and_is_the_same(tmp_path: Path) -> None:
    told = []
    for number in range(2):
        with tempfile.TemporaryDirectory(dir="/tmp") as work_dir:
            probe = subprocess.run(
                [sys.executable, "-m", PROBE, "local[1]", work_dir],
                cwd=PROJECT,
                env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=STARTING_SECONDS,
                check=False,
            )
            assert (probe.returncode, probe.stderr) == (0, ""), f"session {number}"
            told.append(json.loads(probe.stdout))
    assert ["SparkSubmit" in one.pop("java") for one in told] == [True, False]
    daemons = [one["worker"].pop("daemon").split()[2] for one in told]
    assert daemons == ["cleaner_jobs.spark.worker_daemon", "cleaner_jobs.spark.prestarted_daemon"]
    assert told[0] == told[1]
    assert told[0]["alive"] == 0
