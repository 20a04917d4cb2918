"""Another Spark, Java or Python on the machine: no influence on a local run, or one line names it.

What Spark's own scripts and sources read is the measure: bin/load-spark-env.sh, bin/spark-class,
SparkSubmitArguments, pyspark/java_gateway.py, pyspark/core/context.py.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark import SparkContext

from cleaner_jobs.spark import environment, spark_session
from cleaner_jobs.spark.environment import SparkStartError

PROJECT = Path(__file__).parents[3]
PROBE = "tests.cleaner_jobs.spark.spark_probe"
STARTING_SECONDS = 300
CLUSTER = "spark://master:7077"
SPARK = Path(pyspark.__file__).parent


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A Spark 3.5 as an archive of Apache's unpacks."""
    home = tmp_path / "spark-3.5"
    for name in ("jars", "python/pyspark", "conf"):
        (home / name).mkdir(parents=True)
    (home / "RELEASE").write_text("Spark 3.5.3 built for Hadoop 3.3.4\n")
    (home / "jars" / "spark-core_2.12-3.5.3.jar").touch()
    (home / "python" / "pyspark" / "__init__.py").touch()
    (home / "python" / "pyspark" / "version.py").write_text('__version__: str = "3.5.3"\n')
    (home / "conf" / "spark-defaults.conf").write_text(
        "# ours\nspark.jars.packages  org.a:b:1\nspark.submit.deployMode=cluster\n"
        "spark.ssl.keyPassword hidden\n"
    )
    (home / "conf" / "spark-env.sh").write_text("exit 3\n")
    hadoop = "<name>hadoop.security.authentication</name><value>kerberos</value>"
    (home / "conf" / "core-site.xml").write_text(
        f"<configuration><property>{hadoop}</property></configuration>"
    )
    return home


def hostile(other: Path) -> dict[str, str]:
    """Each of them alone keeps Spark from starting, or changes what starts."""
    return {
        "SPARK_HOME": str(other),
        "SPARK_CONF_DIR": str(other / "conf"),
        "HADOOP_CONF_DIR": str(other / "conf"),
        "YARN_CONF_DIR": str(other / "conf"),
        "SPARK_REMOTE": "sc://localhost:15002",
        "SPARK_CONNECT_MODE": "1",
        "SPARK_LOCAL_IP": "192.0.2.1",
        "SPARK_LOCAL_DIRS": "/nonexistent/blocks",
        "SPARK_DRIVER_MEMORY": "9000g",
        "SPARK_SUBMIT_OPTS": "-XX:NoSuchOption",
        "SPARK_LAUNCHER_OPTS": "-XX:NoSuchOption",
        "PYSPARK_PYTHON": "/nonexistent/python3",
        "PYSPARK_DRIVER_PYTHON": "/nonexistent/python3",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "PYSPARK_PIN_THREAD": "false",
        "HADOOP_TOKEN_FILE_LOCATION": "/nonexistent/token",
        "_JAVA_OPTIONS": "-Xmx48m",
        "JAVA_TOOL_OPTIONS": "-XX:+UseG1GC",
        "JDK_JAVA_OPTIONS": "-javaagent:/nonexistent.jar",
        "BASH_ENV": str(other / "conf" / "spark-env.sh"),
        "SHELLOPTS": "nounset",
    }


def without_settings() -> dict[str, str]:
    return {n: v for n, v in os.environ.items() if environment.setting_of(n) is None}


@pytest.mark.spark
@pytest.mark.parametrize("kept", [False, True])
def test_a_local_session_starts_beside_all_of_them(kept: bool, other: Path, tmp_path: Path) -> None:
    """kept: Java with the command line of an earlier start, without Spark's launcher."""
    environ = {**without_settings(), **hostile(other), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in range(1 + kept):
        with tempfile.TemporaryDirectory(dir="/tmp") as work_dir:
            done = subprocess.run(
                [sys.executable, "-m", PROBE, "local[1]", work_dir],
                cwd=PROJECT,
                env=environ,
                capture_output=True,
                text=True,
                timeout=STARTING_SECONDS,
                check=False,
            )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["listening"] == ["127.0.0.1"]
    assert os.path.samefile(told["worker"]["python"], sys.executable)
    assert str(other) not in told["java"]


def test_every_variable_of_sparks_own_scripts_is_in_the_table() -> None:
    """Those of a cluster's daemons, and of the scripts themselves, begin like others here."""
    texts = [path.read_text("utf-8", "replace") for path in (SPARK / "bin").iterdir()]
    texts += [(SPARK / name).read_text() for name in ("java_gateway.py", "core/context.py")]
    named = set(
        re.findall(r"\b_?[A-Z][A-Z_]*(?:SPARK|HADOOP|YARN|JAVA_OPT)[A-Z_]*\b", " ".join(texts))
    )
    named |= set(re.findall(r"\b(?:SPARK|PYSPARK|HADOOP|YARN)_[A-Z_]+\b", " ".join(texts)))
    own = {"_PYSPARK_DRIVER_CONN_INFO_PATH", "FIND_SPARK_HOME_PYTHON_SCRIPT", "_SPARK_CMD_USAGE"}
    assert {name for name in named - own if environment.setting_of(name) is None} == set()
    assert "SPARK_CONF_DIR" in named and "PYSPARK_SUBMIT_ARGS" in named


def test_a_local_run_has_nothing_of_the_users(other: Path) -> None:
    given = {**hostile(other), "PATH": "/bin", "JAVA_HOME": "/java"}
    assert environment.own_environ(given, local=True) == {
        "PATH": "/bin",
        "JAVA_HOME": "/java",
        "SPARK_HOME": str(SPARK),
        "SPARK_CONF_DIR": "/nonexistent/spark",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


def test_on_a_cluster_the_users_settings_count_but_what_contradicts_the_master(
    other: Path,
) -> None:
    given = hostile(other)
    gone = {
        *("SPARK_REMOTE", "SPARK_CONNECT_MODE", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PIN_THREAD"),
        *("BASH_ENV", "SHELLOPTS"),
    }
    expected = {name: value for name, value in given.items() if name not in gone}
    assert environment.own_environ(given, local=False) == expected


def test_the_process_has_its_environment_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    before = dict(os.environ)
    with environment.process_environ(environment.own_environ(os.environ, local=True)):
        assert "SPARK_REMOTE" not in os.environ
        assert os.environ["SPARK_CONF_DIR"] == "/nonexistent/spark"
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("master", "environ", "ours"),
    [
        (None, {}, True),
        ("local[4]", {}, True),
        (CLUSTER, {}, False),
        ("local-cluster[1,1,1024]", {}, False),
        (None, {"PYSPARK_GATEWAY_PORT": "1"}, False),
    ],
)
def test_whose_settings_count(master: str | None, environ: Mapping[str, str], ours: bool) -> None:
    assert environment.is_all_ours(master, environ) is ours


def refused(master: str | None, environ: Mapping[str, str]) -> str:
    with pytest.raises(SparkStartError) as caught:
        environment.require_fit(master, environ)
    return str(caught.value)


def test_jars_of_another_version_are_refused_where_they_would_be_used(other: Path) -> None:
    environ = {"SPARK_HOME": str(other)}
    environment.require_fit(None, environ)
    environment.require_fit("local[2]", environ)
    environment.require_fit(CLUSTER, {})
    installed = metadata.version("pyspark")
    assert refused(CLUSTER, environ) == (
        f"Spark did not start with master {CLUSTER}: pyspark is {installed}, and the jars in "
        f"{other}/jars, which SPARK_HOME={other} names, are 3.5.3. Unset SPARK_HOME, or install "
        "the pyspark of that version"
    )
    (other / "jars" / "spark-core_2.12-3.5.3.jar").unlink()
    assert refused(CLUSTER, environ) == (
        f"Spark did not start with master {CLUSTER}: no jars of Spark in {other}/jars, which "
        f"SPARK_HOME={other} names. Unset SPARK_HOME, or let it name a whole Spark of the version "
        "of pyspark"
    )
    (other / "jars" / f"spark-core_2.13-{installed}.jar").touch()
    environment.require_fit(CLUSTER, environ)


def test_a_pyspark_of_another_spark_in_pythonpath_is_refused_before_it_is_loaded(
    other: Path, tmp_path: Path
) -> None:
    code = (
        "import os; from cleaner_jobs.spark import environment as e\n"
        "try: e.require_fit(None, os.environ)\n"
        "except e.SparkStartError as error: print(error)"
    )
    variable = f"{other / 'python'}:{PROJECT}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**without_settings(), "PYTHONPATH": variable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        f"Spark did not start: the pyspark in {other}/python/pyspark, which PYTHONPATH={variable} "
        f"names, is 3.5.3, and the one installed here is {metadata.version('pyspark')}. Take "
        f"{other}/python out of PYTHONPATH\n"
    )


def test_what_counted_is_named_without_secrets(other: Path) -> None:
    environ = {
        "SPARK_CONF_DIR": str(other / "conf"),
        "SPARK_RPC_AUTHENTICATION_SECRET": "hidden",
        "PYSPARK_SUBMIT_ARGS": "a" * 121,
        "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStorePassword=hidden",
        "SPARK_REMOTE": "sc://host",
        "HOME": "/home/me",
    }
    assert environment.settings_notice(environ) == (
        f". These settings counted: JAVA_TOOL_OPTIONS=…; PYSPARK_SUBMIT_ARGS={'a' * 120}…; "
        f"SPARK_CONF_DIR={other}/conf; SPARK_RPC_AUTHENTICATION_SECRET=…; "
        f"{other}/conf/spark-defaults.conf (spark.jars.packages, spark.submit.deployMode, "
        f"spark.ssl.keyPassword); {other}/conf/spark-env.sh. Unset what is not meant for this run"
    )
    assert environment.settings_notice({"HOME": "/home/me"}) == ""


@pytest.fixture
def no_network() -> Iterator[list[str]]:
    if subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("may not make a network of its own")
    yield ["unshare", "-n"]


def test_no_loopback_interface_is_named(no_network: list[str]) -> None:
    code = (
        "import os; from cleaner_jobs.spark import environment as e; print(e.why_unfit({}, True))"
    )
    done = subprocess.run(
        [*no_network, sys.executable, "-c", code],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "nothing can connect to 127.0.0.1: Network is unreachable, and Spark's Java and Python "
        "speak over it. Bring the loopback interface up: ip link set lo up\n"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"PYSPARK_GATEWAY_PORT": "1", "PYSPARK_GATEWAY_SECRET": "x"},
        {"PYSPARK_GATEWAY_PORT": "1"},
        {"PYSPARK_GATEWAY_PORT": "one", "PYSPARK_GATEWAY_SECRET": "x"},
    ],
)
def test_what_another_spark_submit_left_is_named(given: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", PROBE, "-", str(tmp_path)],
        cwd=PROJECT,
        env={**without_settings(), **given},
        capture_output=True,
        text=True,
        timeout=STARTING_SECONDS,
        check=False,
    )
    assert done.stderr == (
        "JavaIsGoneError: the Java of spark-submit does not answer at PYSPARK_GATEWAY_PORT="
        f"{given['PYSPARK_GATEWAY_PORT']}: it has ended. If spark-submit did not start this "
        "command, unset that variable\n"
    )


@pytest.mark.parametrize(
    ("python", "cause", "named"),
    [
        ("/usr/bin/python3", "ModuleNotFoundError: No module named 'numpy'", True),
        (sys.executable, "ModuleNotFoundError: No module named 'numpy'", False),
        ("/usr/bin/python3", "OSError: no room", False),
    ],
)
def test_the_python_of_tasks_is_named_where_they_fail_for_it(
    python: str, cause: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(pythonExec=python)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    words = "; tasks ran under /usr/bin/python3, which PYSPARK_PYTHON or spark.pyspark.python names"
    failed = RuntimeError(f"Traceback:\n{cause}\n")
    expected = f"a task failed: {cause}{words if named else ''}"
    assert spark_session.cause_of_failure(failed) == expected
