"""Kafka's log manager in a Java that stays: one question a line, one answer a line."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from tests.broker.broker import POM
from tests.oracle import jars, versions

JAVA_SOURCES = Path(__file__).parent / "java"
JAVA_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # what the optimising compiler takes it never gives back
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)
Answer = dict[str, Any]


class BrokerError(Exception):
    """It did not answer, or said no to all that it was asked for."""


class Broker(Protocol):
    """Something that answers for a broker."""

    def ask(self, what: str, **question: Any) -> Answer: ...


class BrokerProcess:
    """Use it as a context manager."""

    def __enter__(self) -> Self:
        library = jars.fetched(POM, versions.VERSIONS["4.3"].release)
        sources = sorted(JAVA_SOURCES.glob("*.java"))
        classes = jars.kept("histories", [POM, *sources], lambda out: _compile(library, out))
        class_path = f"{classes}{os.pathsep}{library}/*"
        self._java = subprocess.Popen(
            [jars.tool("java"), *JAVA_OPTIONS, "-cp", class_path, "Histories"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._java.kill()
        self._java.wait()
        for pipe in (self._java.stdin, self._java.stdout):
            _known(pipe).close()

    def ask(self, what: str, **question: Any) -> Answer:
        """Raise BrokerError where there is no answer or an error in place of one."""
        out, answers = _known(self._java.stdin), _known(self._java.stdout)
        out.write(json.dumps({"ask": what, **question}) + "\n")
        out.flush()
        line = answers.readline()
        if not line:
            raise BrokerError(f"Java ended with {self._java.wait()}")
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise BrokerError(answer["error"])
        return answer

    def seconds(self) -> float:
        """Of processor that it has used."""
        fields = Path(f"/proc/{self._java.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _known(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _compile(library: Path, out: Path) -> None:
    sources: Sequence[str] = [str(path) for path in sorted(JAVA_SOURCES.glob("*.java"))]
    options = ["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", f"{library}/*"]
    problem = jars.problem_of([jars.tool("javac"), *options, "-d", str(out), *sources])
    if problem is not None:
        raise jars.OracleUnavailableError(f"the histories' Java does not compile: {problem}")
