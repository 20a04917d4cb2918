"""Where the oracle cannot run, its message says what is missing."""

import importlib.util
from pathlib import Path

import pytest

from tests.oracle import jars, kafka


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing in PATH, nothing fetched, and no pyspark."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("ORACLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    return tmp_path


def _install(bare: Path, tool: str, script: str = "exit 1") -> None:
    path = bare / "bin" / tool
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_java_a_jdk_is_asked_for(bare: Path) -> None:  # noqa: ARG001
    with pytest.raises(jars.OracleUnavailableError, match=r"needs a JDK, 17 or newer.* no java "):
        kafka.run("dump", "x")


def test_a_runtime_without_a_compiler_is_not_enough(bare: Path) -> None:
    _install(bare, "java")
    with pytest.raises(jars.OracleUnavailableError, match="no javac in JAVA_HOME/bin or PATH"):
        kafka.run("dump", "x")


def test_without_maven_and_ivy_both_are_named(bare: Path) -> None:
    _install(bare, "java")
    _install(bare, "javac")
    with pytest.raises(jars.OracleUnavailableError, match=r"no mvn in PATH; by Ivy: pyspark"):
        kafka.run("dump", "x")


def test_a_fetch_that_fails_leaves_nothing_behind(bare: Path) -> None:
    for tool in ("java", "javac"):
        _install(bare, tool)
    _install(bare, "mvn", "echo half a jar > ${8#*=}/kafka.jar; echo offline; exit 1")
    with pytest.raises(jars.OracleUnavailableError, match="by Maven: offline; by Ivy"):
        kafka.run("dump", "x")
    assert [path.name for path in (bare / "cache").iterdir()] == [".lock"]


def test_the_ivy_module_names_what_the_pom_names() -> None:
    module = jars.ivy_module(kafka.POM, "4.3.1")
    assert 'org="org.apache.kafka" name="kafka_2.13" rev="4.3.1"' in module
    assert module.count("<dependency ") == kafka.POM.read_text().count("<dependency>")
