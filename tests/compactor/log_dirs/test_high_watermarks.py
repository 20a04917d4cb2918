"""Without replication-offset-checkpoint only the operator knows how far a log is replicated."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.log_dirs.survey import require_high_watermarks
from compactor.outcome.round_report import CleaningReport
from compactor.planning.round_plan import RoundPlan, notices_of
from storage.formats import clean_shutdown
from storage.formats.checkpoint import REPLICATION
from tests.compactor.plan_logs import COMPACT, NOW_MS, plan_log_dirs
from tests.compactor.plan_logs import build as build_log_dir
from tests.compactor.rounds import report
from tests.compactor.small_log import build
from tests.support.file_states import state_of

COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")
Compactor = Callable[..., tuple[int, str, dict[str, Any]]]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Of a broker that has written all but that file."""
    directory = build(tmp_path / "log").parent
    clean_shutdown.write(str(directory))
    (directory / REPLICATION).unlink()
    return directory


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[RoundPlan]:
    """Those that the engine is given; it does nothing."""
    given: list[RoundPlan] = []

    def run_round(plan: RoundPlan, *_: object) -> CleaningReport:
        given.append(plan)
        return report()

    monkeypatch.setattr(cleaner_manager, "run_round", run_round)
    return given


@pytest.fixture
def compactor(capsys: pytest.CaptureFixture[str]) -> Compactor:
    """Code, what was said on standard error, and the document."""

    def run(*words: object) -> tuple[int, str, dict[str, Any]]:
        code = cli.main([*map(str, words), *COMPACTED, "--format", "json"])
        said = capsys.readouterr()
        return code, said.err, json.loads(said.out.splitlines()[-1])

    return run


def test_a_run_is_refused_unless_told_that_all_is_replicated(
    log_dir: Path, compactor: Compactor, plans: list[RoundPlan]
) -> None:
    before = state_of(log_dir)
    code, error, document = compactor("run", log_dir)
    assert (code, document["status"], plans) == (3, "refused", [])
    assert f"{log_dir}: no {REPLICATION}, " in error
    assert "--assume-fully-replicated. Nothing was changed." in error
    assert state_of(log_dir) == before
    assert compactor("run", log_dir, "--assume-fully-replicated")[0] == 0
    assert [log.name for log in plans[0].logs] == ["orders-0"]


def test_a_file_of_settings_may_say_so(
    log_dir: Path, compactor: Compactor, plans: list[RoundPlan], tmp_path: Path
) -> None:
    config = tmp_path / "compactor.toml"
    config.write_text("[round]\nassume_fully_replicated = true")
    assert compactor("run", log_dir, "--config", config)[0] == 0
    assert plans


def test_plan_and_a_dry_run_say_that_the_end_is_taken(
    log_dir: Path, compactor: Compactor, plans: list[RoundPlan]
) -> None:
    taken = f"{log_dir} has no {REPLICATION}: the end of each log is taken for its high watermark"
    assert compactor("run", log_dir, "--dry-run")[0] == 0
    assert taken in notices_of(plans[0])
    document = compactor("plan", log_dir, "--assume-fully-replicated")[2]
    assert (document["refusals"], taken in document["notices"]) == ([], True)
    assert [entry["has_high_watermarks"] for entry in document["log_dirs"]] == [False]
    assert document["totals"]["to_clean"] == 1


def test_one_of_several_directories_is_enough(tmp_path: Path, log_dir: Path) -> None:
    other = build_log_dir(tmp_path / "other")
    found = plan_log_dirs([other, str(log_dir)], COMPACT, NOW_MS)
    assert [facts.has_high_watermarks for facts in found.log_dirs] == [True, False]
    assert [str(log_dir) in notice for notice in notices_of(found)] == [False, True]


@pytest.mark.parametrize("name", ["__cluster_metadata-0", "orders-0.0123-future", "lost+found"])
def test_a_directory_without_partitions_needs_none(tmp_path: Path, name: str) -> None:
    """A broker writes none there."""
    (tmp_path / name).mkdir()
    require_high_watermarks([str(tmp_path)], False)


def test_a_checkpoint_that_cannot_be_read_is_a_problem_of_its_logs(log_dir: Path) -> None:
    (log_dir / REPLICATION).write_bytes(b"no\n")
    found = plan_log_dirs([str(log_dir)], COMPACT, NOW_MS)
    assert len(notices_of(found)) == 1
    (log,) = found.not_cleaned
    assert str(log_dir / REPLICATION) in str(log.reason)
