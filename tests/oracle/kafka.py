"""Kafka's own storage engine as a subprocess: fetched and compiled on first use, then kept."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.oracle import jars, versions
from tests.oracle.jars import OracleUnavailableError
from tests.oracle.versions import Version

HERE = Path(__file__).parent
JAVA_SOURCES = HERE / "java"
POM = HERE / "pom.xml"
DEFAULT_HEAP = "-Xmx2g"


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
    java, javac = jars.tool("java"), jars.tool("javac")
    version = versions.chosen()
    library = jars.fetched(POM, version.release)
    sources = sources_of(version)
    classes = jars.kept(
        f"classes-{version.release}",
        [POM, Path(versions.__file__), *sources],
        lambda out: _compile(javac, library, version, out),
    )
    options = os.environ.get("ORACLE_JAVA_OPTS", DEFAULT_HEAP).split()
    class_path = f"{classes}{os.pathsep}{library}/*"
    return [java, *options, "-cp", class_path, "Oracle", verb, *map(str, arguments)]


def sources_of(version: Version) -> list[Path]:
    """Those that all versions share, and its own, which take the place of others of their name."""
    shared = JAVA_SOURCES.glob("*.java")
    by_name = {p.name: p for p in shared if version.engine or not p.name.startswith("Engine")}
    by_name |= {p.name: p for p in (JAVA_SOURCES / f"kafka-{version.name}").glob("*.java")}
    return [by_name[name] for name in sorted(by_name)]


def translated(source: Path, version: Version) -> str:
    """What source says, in the words of this version."""
    text = source.read_text(encoding="utf-8")
    for words, its_words in version.words if source.parent == JAVA_SOURCES else ():
        text = text.replace(words, its_words)
    return text


def _compile(javac: str, library: Path, version: Version, out: Path) -> None:
    options = ["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", f"{library}/*"]
    with tempfile.TemporaryDirectory() as scratch:
        sources = [Path(scratch) / source.name for source in sources_of(version)]
        for source, copy in zip(sources_of(version), sources, strict=True):
            copy.write_text(translated(source, version), encoding="utf-8")
        problem = jars.problem_of([javac, *options, "-d", str(out), *map(str, sources)])
    if problem is not None:
        raise OracleUnavailableError(
            f"the oracle does not compile on Kafka {version.release}: {problem}"
        )
