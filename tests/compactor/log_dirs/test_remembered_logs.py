"""What lasts is a warning once and a note after that; what has passed is said by the next run."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compactor.log_dirs.set_aside_memory import SET_ASIDE
from tests.compactor.settings.test_sources import (
    COMPACT,
    KNOWN,
    SAYS_COMPACT,
    Scene,
    alone,
    no_bytes,
    run_json,
    scene,
    written,
)
from tests.storage.log.test_cluster_metadata import config

pytestmark = pytest.mark.usefixtures("without_spark")

PROVES_NOTHING = "it proves nothing"


def said(document: dict[str, Any], words: str) -> tuple[int, int]:
    """How many warnings and notes have these words."""
    return (
        sum(words in each for each in document["warnings"]),
        sum(words in each for each in document["notices"]),
    )


def test_a_condition_is_a_warning_when_it_appears_and_a_note_after_that(tmp_path: Path) -> None:
    found = no_bytes(tmp_path)
    assert said(run_json(found, "--dry-run"), PROVES_NOTHING) == (1, 0)
    first = run_json(found)
    assert (first["exit_code"], said(first, PROVES_NOTHING)) == (4, (1, 0))
    second = run_json(found)
    assert (second["exit_code"], said(second, PROVES_NOTHING)) == (4, (0, 1))
    (note,) = (each for each in second["notices"] if PROVES_NOTHING in each)
    assert note.startswith("Since 20")
    assert said(run_json(found, "--dry-run"), PROVES_NOTHING) == (0, 1)
    assert said(run_json(found, command="plan"), PROVES_NOTHING) == (0, 1)


def test_the_run_after_says_that_a_condition_has_passed_and_that_the_log_is_well(
    tmp_path: Path,
) -> None:
    found = no_bytes(tmp_path)
    run_json(found)
    written(found.metadata, *KNOWN)
    well = run_json(found)
    assert (well["exit_code"], well["warnings"]) == (0, [])
    assert said(well, "t-0 is well again: it was set aside since 20") == (0, 1)
    assert said(well, "(metadata-damaged)") == (0, 1)
    assert said(well, "No longer so, as it was since 20") == (0, 1)
    assert not (found.data / SET_ASIDE).exists()
    assert not any("well again" in each for each in run_json(found)["notices"])


def test_a_condition_that_changes_is_a_warning_again(tmp_path: Path) -> None:
    found = alone(*KNOWN)(tmp_path)
    assert said(run_json(found), "and not the log behind it") == (1, 0)
    assert said(run_json(found), "and not the log behind it") == (0, 1)
    shutil.rmtree(found.metadata)
    found.metadata.mkdir()
    assert said(run_json(found), PROVES_NOTHING) == (1, 0)


def test_a_log_that_a_run_leaves_out_is_not_said_to_be_well(tmp_path: Path) -> None:
    found = no_bytes(tmp_path)
    run_json(found)
    written(found.metadata, *KNOWN)
    out = run_json(found, "--exclude", "t")
    assert said(out, "well again") == (0, 0)
    assert said(run_json(found), "t-0 is well again") == (0, 1)


def test_settings_that_differ_are_a_warning_once(tmp_path: Path) -> None:
    found = scene(tmp_path)
    written(found.metadata, *KNOWN, config("retention.ms", "7"))
    file = tmp_path / "topics.json"
    topics = json.loads(SAYS_COMPACT)
    topics["t"]["retention.ms"] = "8"
    file.write_text(json.dumps(topics))
    found.words = ["--topic-configs", str(file)]
    assert said(run_json(found), "differs in 1 setting") == (1, 0)
    assert said(run_json(found), "differs in 1 setting") == (0, 1)


def test_nothing_is_remembered_where_nothing_is_wrong(tmp_path: Path) -> None:
    found: Scene = scene(tmp_path)
    written(found.metadata, *KNOWN, COMPACT)
    run_json(found)
    assert not (found.data / SET_ASIDE).exists()


def test_a_damaged_memory_is_said_and_left(tmp_path: Path) -> None:
    found = no_bytes(tmp_path)
    run_json(found)
    path = found.data / SET_ASIDE
    document = json.loads(path.read_text())
    assert (document["version"], document["logs"]) == (3, [])
    document["waiting"][0]["code"] = 7
    path.write_text(json.dumps(document))
    ended = run_json(found)
    assert said(ended, "log 0: code is 7; it is ignored") == (1, 0)
    assert said(ended, PROVES_NOTHING) == (1, 0)
