"""Kafka's own storage engine as a subprocess: fetched and compiled on first use, then kept."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.oracle import jars
from tests.oracle.jars import OracleUnavailableError

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
    library = jars.fetched(POM)
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    classes = jars.kept(
        "classes", [POM, *sources], lambda out: _compile(javac, library, sources, out)
    )
    options = os.environ.get("ORACLE_JAVA_OPTS", DEFAULT_HEAP).split()
    class_path = f"{classes}{os.pathsep}{library}/*"
    return [java, *options, "-cp", class_path, "Oracle", verb, *map(str, arguments)]


def _compile(javac: str, library: Path, sources: Sequence[Path], out: Path) -> None:
    options = ["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", f"{library}/*"]
    problem = jars.problem_of([javac, *options, "-d", str(out), *map(str, sources)])
    if problem is not None:
        raise OracleUnavailableError(f"the oracle does not compile: {problem}")
