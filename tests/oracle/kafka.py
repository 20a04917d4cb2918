"""Kafka's own storage engine as a subprocess: fetched and compiled on first use, then kept.

The jars named in `pom.xml` come by Maven, or, where there is none, by the Ivy inside pyspark. They
and the compiled classes stay in a cache directory keyed by their sources: a change makes a new one.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
JAVA_SOURCES = HERE / "java"
POM = HERE / "pom.xml"
DEFAULT_HEAP = "-Xmx2g"
IVY_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""  # ibiblio without a root is Maven's central repository


class OracleUnavailableError(Exception):
    """The oracle cannot be made ready on this machine; the message says what is missing."""


class OracleFailedError(Exception):
    """The oracle ran and said no; the message is what it said."""


def run(verb: str, *arguments: str | Path, cwd: Path | None = None) -> str:
    """Run one verb and return what it printed. Raise OracleFailedError where it ends badly."""
    done = subprocess.run(
        command(verb, *arguments), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OracleFailedError(
            f"oracle {verb} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        )
    return done.stdout


def command(verb: str, *arguments: str | Path) -> list[str]:
    """The command line of one verb, after whatever has to be fetched and compiled for it."""
    java, javac = _tool("java"), _tool("javac")
    home = _cache_home()
    jars = home / f"jars-{_digest([POM])}"
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    classes = home / f"classes-{_digest([POM, *sources])}"
    with _one_at_a_time(home):
        if not jars.exists():
            _make(jars, _fetch_jars)
        if not classes.exists():
            _make(classes, lambda out: _compile(javac, jars, sources, out))
    options = os.environ.get("ORACLE_JAVA_OPTS", DEFAULT_HEAP).split()
    class_path = f"{classes}{os.pathsep}{jars}/*"
    return [java, *options, "-cp", class_path, "Oracle", verb, *map(str, arguments)]


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise OracleUnavailableError(
            f"the oracle needs a JDK, 17 or newer, and finds no {name} in JAVA_HOME/bin or PATH "
            "(a Java runtime alone is not enough; Debian: apt-get install openjdk-17-jdk-headless)"
        )
    return found


def _cache_home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("ORACLE_CACHE") or Path(cache) / "log-compactor-oracle")
    home.mkdir(parents=True, exist_ok=True)
    return home


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory beside target, then give it target's name: it is whole or not there."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        fill(unfinished)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _fetch_jars(out: Path) -> None:
    failures = []
    for name, fetch in (("Maven", _fetch_by_maven), ("Ivy", _fetch_by_ivy)):
        problem = fetch(out)
        if problem is None:
            return
        failures.append(f"by {name}: {problem}")
        for leftover in out.iterdir():
            leftover.unlink()
    raise OracleUnavailableError("Kafka's jars cannot be fetched, " + "; ".join(failures))


def _fetch_by_maven(out: Path) -> str | None:
    """Return None when done, else the problem."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no mvn in PATH"
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={out}"]
    return _problem([maven, "-q", "-B", "-f", str(POM), *goal])


def _fetch_by_ivy(out: Path) -> str | None:
    """Return None when done, else the problem."""
    pyspark = importlib.util.find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    jars = [jar for folder in folders or () for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not jars:
        return "pyspark, which brings it, is not installed"
    with tempfile.TemporaryDirectory() as scratch:
        settings, module = Path(scratch) / "settings.xml", Path(scratch) / "ivy.xml"
        settings.write_text(IVY_SETTINGS.format(cache=Path(scratch) / "cache"))
        module.write_text(_ivy_module())
        files = ["-settings", str(settings), "-ivy", str(module)]
        retrieve = ["-retrieve", f"{out}/{IVY_PATTERN}", "-types", "jar", "bundle", "-warn"]
        return _problem([_tool("java"), "-jar", str(jars[0]), *files, *retrieve])


def _ivy_module() -> str:
    """The dependencies of `pom.xml` in Ivy's words."""
    namespace = {"m": "http://maven.apache.org/POM/4.0.0"}
    lines = []
    for dependency in ElementTree.parse(POM).iterfind("m:dependencies/m:dependency", namespace):
        group, artifact, version = (
            dependency.findtext(f"m:{tag}", namespaces=namespace)
            for tag in ("groupId", "artifactId", "version")
        )
        names = f'org="{group}" name="{artifact}" rev="{version}"'
        lines.append(f'<dependency {names} conf="default->master,runtime"/>')
    head = '<ivy-module version="2.0"><info organisation="log-compactor" module="oracle"/>'
    return f"{head}<dependencies>{''.join(lines)}</dependencies></ivy-module>"


def _compile(javac: str, jars: Path, sources: Sequence[Path], out: Path) -> None:
    options = ["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(out)]
    problem = _problem([javac, *options, *map(str, sources)])
    if problem is not None:
        raise OracleUnavailableError(f"the oracle does not compile: {problem}")


def _problem(argv: Sequence[str]) -> str | None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-2000:].strip()
