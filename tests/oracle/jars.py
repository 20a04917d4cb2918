"""Kafka's jars as a `pom.xml` names them: fetched on first use, then kept in the user's cache.

They come by Maven, or, where there is none, by the Ivy inside pyspark. What is kept is keyed by its
sources: a change makes a new one.
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

RELEASE = "kafka.release"  # the property of a pom that is the release of Kafka
IVY_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""  # ibiblio without a root is Maven's central repository


class OracleUnavailableError(Exception):
    """Kafka cannot be made ready on this machine; the message says what is missing."""


def tool(name: str) -> str:
    """The path of a program of the JDK."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise OracleUnavailableError(
            f"the oracle needs a JDK, 17 or newer, and finds no {name} in JAVA_HOME/bin or PATH "
            "(a Java runtime alone is not enough; Debian: apt-get install openjdk-17-jdk-headless)"
        )
    return found


def fetched(pom: Path, release: str) -> Path:
    """The directory with the jars that pom names, of this Kafka, and all that they need to run."""
    return kept(f"jars-{release}", [pom], lambda out: _fetch(pom, release, out))


def kept(name: str, sources: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The directory in the cache that fill made of the sources, now or some time ago."""
    home = _cache_home()
    target = home / f"{name}-{_digest(sources)}"
    with _one_at_a_time(home):
        if not target.exists():
            _make(target, fill)
    return target


def problem_of(argv: Sequence[str]) -> str | None:
    """Run a program; return None when it ends well, else the end of what it said."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-2000:].strip()


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


def _fetch(pom: Path, release: str, out: Path) -> None:
    failures = []
    for name, fetch in (("Maven", _fetch_by_maven), ("Ivy", _fetch_by_ivy)):
        problem = fetch(pom, release, out)
        if problem is None:
            return
        failures.append(f"by {name}: {problem}")
        for leftover in out.iterdir():
            leftover.unlink()
    raise OracleUnavailableError("Kafka's jars cannot be fetched, " + "; ".join(failures))


def _fetch_by_maven(pom: Path, release: str, out: Path) -> str | None:
    """Return None when done, else the problem."""
    maven = shutil.which("mvn")
    if maven is None:
        return "there is no mvn in PATH"
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={out}"]
    its_release = f"-D{RELEASE}={release}"
    return problem_of([maven, "-q", "-B", "-f", str(pom), its_release, *goal])


def _fetch_by_ivy(pom: Path, release: str, out: Path) -> str | None:
    """Return None when done, else the problem."""
    pyspark = importlib.util.find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    jars = [jar for folder in folders or () for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not jars:
        return "pyspark, which brings it, is not installed"
    with tempfile.TemporaryDirectory() as scratch:
        settings, module = Path(scratch) / "settings.xml", Path(scratch) / "ivy.xml"
        settings.write_text(IVY_SETTINGS.format(cache=Path(scratch) / "cache"))
        module.write_text(ivy_module(pom, release))
        files = ["-settings", str(settings), "-ivy", str(module)]
        retrieve = ["-retrieve", f"{out}/{IVY_PATTERN}", "-types", "jar", "bundle", "-warn"]
        return problem_of([tool("java"), "-jar", str(jars[0]), *files, *retrieve])


def ivy_module(pom: Path, release: str) -> str:
    """The dependencies of pom, of this Kafka, in Ivy's words."""
    namespace = {"m": "http://maven.apache.org/POM/4.0.0"}
    lines = []
    for dependency in ElementTree.parse(pom).iterfind("m:dependencies/m:dependency", namespace):
        group, artifact, version = (
            dependency.findtext(f"m:{tag}", namespaces=namespace)
            for tag in ("groupId", "artifactId", "version")
        )
        version = release if version == f"${{{RELEASE}}}" else version
        names = f'org="{group}" name="{artifact}" rev="{version}"'
        lines.append(f'<dependency {names} conf="default->master,runtime"/>')
    head = '<ivy-module version="2.0"><info organisation="log-compactor" module="oracle"/>'
    return f"{head}<dependencies>{''.join(lines)}</dependencies></ivy-module>"
