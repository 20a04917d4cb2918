"""Which Kafka the oracle runs on, and what its sources say otherwise for it."""

from pathlib import Path

import pytest

from tests.oracle import kafka, versions
from tests.oracle.jars import OracleUnavailableError
from tests.oracle.versions import VERSIONS, Version


def test_the_environment_chooses_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORACLE_KAFKA", raising=False)
    assert versions.chosen().release == "4.3.1"
    monkeypatch.setenv("ORACLE_KAFKA", "")  # as make leaves it
    assert versions.chosen().release == "4.3.1"
    monkeypatch.setenv("ORACLE_KAFKA", "4.4")
    assert versions.chosen().release == "4.4.0"


def test_a_version_that_the_oracle_does_not_run_on_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ORACLE_KAFKA", "4.0")
    with pytest.raises(OracleUnavailableError, match=r"=4\.0: the oracle runs on 4\.1, 4\.2, 4\.3"):
        versions.chosen()


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_every_word_that_a_version_replaces_is_said_somewhere(version: Version) -> None:
    said = "".join(p.read_text() for p in kafka.sources_of(version) if _is_shared(p))
    assert [words for words, _ in version.words if words not in said] == []


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_the_files_of_a_version_take_the_place_of_others_once(version: Version) -> None:
    names = [path.name for path in kafka.sources_of(version)]
    assert len(set(names)) == len(names)
    own = {path.name for path in kafka.sources_of(version) if not _is_shared(path)}
    shared = {path.name for path in kafka.JAVA_SOURCES.glob("*.java")}
    assert own <= shared if version.engine else own == {"NoEngine.java"}


def test_every_folder_of_a_version_is_one_of_a_version_that_there_is() -> None:
    folders = {path.name for path in kafka.JAVA_SOURCES.iterdir() if path.is_dir()}
    assert folders <= {f"kafka-{name}" for name in VERSIONS}


def test_the_words_of_a_version_are_replaced_in_what_is_shared_alone() -> None:
    close = kafka.JAVA_SOURCES / "PartitionLog.java"
    assert "prepareActiveSegmentForClose" not in kafka.translated(close, VERSIONS["4.3"])
    assert "prepareActiveSegmentForClose" in kafka.translated(close, VERSIONS["4.4"])
    own = kafka.JAVA_SOURCES / "kafka-4.4" / "EngineLogManagers.java"
    assert kafka.translated(own, VERSIONS["4.4"]) == own.read_text()


def _is_shared(path: Path) -> bool:
    return path.parent == kafka.JAVA_SOURCES
