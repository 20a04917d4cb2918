"""What of a user's environment counts where Spark is started here: one table, and who asks it.

A machine may have another Spark, another Java or another Python, and variables and files that
belong to it. A local run is all ours: nothing of them counts there. Where `--master` names a
cluster they are the user's wish and count, and the error of a start that fails names them. Under
`spark-submit` Java has read them before this program starts.

`docs/spark.md` has the same table for people.
"""

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import NamedTuple

from cleaner_jobs.user_cache import text_of
from storage.errors import CleaningFailedError
from storage.files.local import LOCAL
from storage.user_home import NOWHERE, has_name, name_of_user

SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the Python that it starts
LOOPBACK_ADDRESS = "127.0.0.1"
DEFAULTS_FILE = "spark-defaults.conf"
CONF_FILES = (DEFAULTS_FILE, "spark-env.sh", "java-opts")  # that Spark's launcher reads
_MOST_SHOWN = 120  # characters of a value
_SECRET = re.compile("secret|password|token|key", re.IGNORECASE)


class SparkStartError(CleaningFailedError):
    """Spark did not start. Nothing was changed."""


class Setting(NamedTuple):
    """A variable, or all whose names begin like this one."""

    name: str  # an asterisk at its end: all that begin so
    counts_on_cluster: bool


# The first that fits a name holds.
SETTINGS = (
    Setting("SPARK_REMOTE", False),  # --master says where Spark is
    Setting("SPARK_LOCAL_REMOTE", False),
    Setting("SPARK_CONNECT_*", False),
    Setting("SPARK_TESTING", False),
    Setting("SPARK_ENV_LOADED", False),
    Setting("SPARK_AUTH_SOCKET_TIMEOUT", False),  # pyspark's own, which a session leaves behind
    Setting("SPARK_BUFFER_SIZE", False),
    Setting("PYSPARK_PIN_THREAD", False),
    Setting("PYSPARK_DRIVER_PYTHON*", False),  # the driver is this process
    Setting("PYSPARK_GATEWAY_*", False),  # of spark-submit, which has Java already
    Setting("SPARK_*", True),
    Setting("PYSPARK_*", True),
    Setting("HADOOP_*", True),
    Setting("YARN_*", True),
    Setting("_JAVA_OPTIONS", True),
    Setting("JAVA_TOOL_OPTIONS", True),
    Setting("JDK_JAVA_OPTIONS", True),
    Setting("BASH_ENV", False),  # Spark's launcher is a script of bash
    Setting("SHELLOPTS", False),
    Setting("BASHOPTS", False),
)
JAVA_OPTION_VARIABLES = tuple(s.name for s in SETTINGS if s.name.endswith("_OPTIONS"))


class Unfit(NamedTuple):
    """Why Spark cannot start here."""

    problem: str  # without a full stop
    remedy: str  # whole sentences

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy.removesuffix('.')}"


def is_local(master: str) -> bool:
    """Return whether tasks run in the driver's own Java; a local-cluster has executors."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def is_all_ours(master: str | None, environ: Mapping[str, str]) -> bool:
    """Return whether no setting of the user's counts: Java is started here, for this machine."""
    return SUBMITTED_VARIABLE not in environ and (master is None or is_local(master))


def start_failed(master: str | None, cause: str) -> SparkStartError:
    given = f" with master {master}" if master else ""
    return SparkStartError(f"Spark did not start{given}: {cause}")


def require_fit(master: str | None, environ: Mapping[str, str]) -> None:
    """Raise SparkStartError where `why_unfit` knows why. Of spark-submit Java runs already."""
    if SUBMITTED_VARIABLE in environ:
        return
    unfit = why_unfit(environ, is_all_ours(master, environ))
    if unfit:
        raise start_failed(master, str(unfit))


def spark_home(environ: Mapping[str, str]) -> str:
    """Return where Spark's jars are: SPARK_HOME, or else the pyspark package."""
    if environ.get("SPARK_HOME"):
        return environ["SPARK_HOME"]
    package = find_spec("pyspark")
    assert package and package.origin, "pyspark is a dependency of this project"
    return os.path.dirname(package.origin)


def setting_of(name: str) -> Setting | None:
    """Return the row of a variable; None: it has nothing to do with Spark."""
    for setting in SETTINGS:
        if name == setting.name or (
            setting.name.endswith("*") and name.startswith(setting.name[:-1])
        ):
            return setting
    return None


def own_environ(environ: Mapping[str, str], local: bool) -> dict[str, str]:
    """Return the environment that Spark is started in, and that its jars and caches are found by.

    local: without anything of another Spark. Otherwise the user's, without what contradicts a
    master that is named.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not (row := setting_of(name)) or (row.counts_on_cluster and not local)
    }
    home = spark_home(kept)
    if local and not has_jars(home) and environ.get("SPARK_HOME"):
        home = environ["SPARK_HOME"]  # a pyspark that brings no Java part
    kept.setdefault("SPARK_HOME", home)
    kept.setdefault("PYSPARK_PYTHON", sys.executable)
    if not has_name():
        kept.setdefault("SPARK_USER", name_of_user())  # or Hadoop asks the system, and fails
    if local:
        kept["SPARK_LOCAL_IP"] = LOOPBACK_ADDRESS
        kept["SPARK_CONF_DIR"] = os.path.join(NOWHERE, "spark")
    return kept


@contextmanager
def process_environ(wanted: Mapping[str, str]) -> Iterator[None]:
    """Let pyspark, which reads this process's environment, see another one inside."""
    before = dict(os.environ)
    differing = {name for name in {*before, *wanted} if before.get(name) != wanted.get(name)}
    _set(differing, wanted)
    try:
        yield
    finally:
        _set(differing, before)


def _set(names: set[str], values: Mapping[str, str]) -> None:
    for name in names:
        if name in values:
            os.environ[name] = values[name]
        else:
            os.environ.pop(name, None)


def has_jars(home: str) -> bool:
    return jars_version(home) is not None


def why_unfit(environ: Mapping[str, str], local: bool) -> Unfit | None:
    """Return what keeps Spark from starting in this environment, of what can be seen before."""
    return _of_pyspark(environ) or _of_jars(environ, local) or _of_loopback()


def _of_pyspark(environ: Mapping[str, str]) -> Unfit | None:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return Unfit("pyspark is not installed for this Python", "pip install log-compactor.")
    home = os.path.dirname(spec.origin)
    installed = _installed_version()
    found = version_of(home)
    if found is None or _release(found) == _release(installed):
        return None
    variable = environ.get("PYTHONPATH", "")
    place = os.path.dirname(home)
    named = f", which PYTHONPATH={variable} names" if place in variable else ""
    return Unfit(
        f"the pyspark in {home}{named}, is {found}, and the one installed here is {installed}",
        f"Take {place} out of PYTHONPATH.",
    )


def _installed_version() -> str:
    """Return the version of pyspark that is installed, by what its installer wrote."""
    from importlib import metadata  # only here: it takes longer to load than the rest of this

    return metadata.version("pyspark")


def version_of(home: str) -> str | None:
    """Return the version of a pyspark, without loading it."""
    text = text_of(os.path.join(home, "version.py")) or ""
    found = re.search(r'__version__[^=]*= *"([^"]+)"', text)
    return found[1] if found else None


def _of_jars(environ: Mapping[str, str], local: bool) -> Unfit | None:
    home = own_environ(environ, local)["SPARK_HOME"]
    jars = os.path.join(home, "jars")
    by = f", which SPARK_HOME={home} names," if environ.get("SPARK_HOME") == home else ""
    python_side, java_side = _installed_version(), jars_version(home)
    if java_side is None:
        return Unfit(
            f"no jars of Spark in {jars}{by.removesuffix(',')}",
            "Unset SPARK_HOME, or let it name a whole Spark of the version of pyspark.",
        )
    if _release(java_side) == _release(python_side):
        return None
    return Unfit(
        f"pyspark is {python_side}, and the jars in {jars}{by} are {java_side}",
        "Unset SPARK_HOME, or install the pyspark of that version.",
    )


def jars_version(home: str) -> str | None:
    """Return the version of Spark's jars; None where there are none."""
    with suppress(OSError):
        _, names = LOCAL.list_names(os.path.join(home, "jars"))
        for name in names:
            if name.startswith("spark-core_") and name.endswith(".jar"):
                return name.removesuffix(".jar").rpartition("-")[2]
    return None


def _release(version: str) -> list[str]:
    """Return the major and minor version; those that differ in the third number fit each other."""
    return version.split(".")[:2]


def _of_loopback() -> Unfit | None:
    try:
        with socket.create_server((LOOPBACK_ADDRESS, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        return Unfit(
            f"nothing can connect to {LOOPBACK_ADDRESS}: {error.strerror or error}, and Spark's "
            "Java and Python speak over it",
            "Bring the loopback interface up: ip link set lo up.",
        )
    return None


def set_variables(environ: Mapping[str, str]) -> list[tuple[str, Setting]]:
    """Return the set variables of the table with their values, and the files with settings."""
    found = []
    for name in sorted(environ):
        row = setting_of(name)
        if row is not None and environ[name]:
            found.append((f"{name}={_shown(name, environ[name])}", row))
    return [*found, *((text, Setting(text, True)) for text in _settings_files(environ))]


def settings_notice(environ: Mapping[str, str]) -> str:
    """Return what to say after the cause of a start that failed; empty where nothing is set."""
    counting = [text for text, row in set_variables(environ) if row.counts_on_cluster]
    if not counting:
        return ""
    return f". These settings counted: {'; '.join(counting)}. Unset what is not meant for this run"


def _shown(name: str, value: str) -> str:
    if _SECRET.search(name) or _SECRET.search(value):
        return "…"
    return value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}…"


def _settings_files(environ: Mapping[str, str]) -> Iterator[str]:
    """Return the files with settings, without the values in them, which may be secret."""
    directory = environ.get("SPARK_CONF_DIR") or os.path.join(spark_home(environ), "conf")
    for name in CONF_FILES:
        path = os.path.join(directory, name)
        text = text_of(path)
        if text is None:
            continue
        keys = [
            words[0] for line in text.splitlines() if (words := re.split(r"[\s=:]+", line.strip()))
        ]
        keys = [key for key in keys if key.startswith("spark.")]
        yield f"{path} ({', '.join(keys)})" if keys and name == DEFAULTS_FILE else path
