"""A log without .log files, though checkpoints say that it had records: every command says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from compactor import api
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.plan_logs import NOW_MS, Shape, build
from tests.compactor.test_cluster_settings import POLICY, cluster, identify
from tests.storage.log.test_cluster_metadata import A, B, partition, removal, topic
from tests.support.local_command import Ended, run_command

COMMANDS = (
    ("verify", "{data}"),
    ("doctor", "{data}"),
    ("recover", "{data}"),
    ("plan", "{data}", "--any-clock"),
    ("run", "{data}", "--any-clock", "--dry-run"),
    ("run", "{data}", "--any-clock"),
    ("explain", "{data}", "t-0"),
)
POLICIES = ("compact", "delete")


def without_logs(root: Path, policy: str = "compact") -> Path:
    """A log directory with logs t-0, whose .log files are gone, and u-0."""
    data = root / "data"
    build(data, Shape("t"), Shape("u"))
    for path in (data / "t-0").glob("*.log"):
        path.unlink()
    entries = {("t", 0): 6, ("u", 0): 6}
    checkpoint.write(str(data / checkpoint.RECOVERY_POINT), entries)
    checkpoint.write(str(data / checkpoint.REPLICATION), entries)
    topics = {"t": {"cleanup.policy": policy}, "u": {"cleanup.policy": "delete"}}
    (root / "topics.json").write_text(json.dumps(topics))
    return data


def ended(data: Path, *words: str) -> Ended:
    given = [word.format(data=data) for word in words]
    if words[0] not in ("verify", "doctor"):
        given += ["--topic-configs", str(data.parent / "topics.json")]
    return run_command(*given)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_that_the_records_are_gone(
    tmp_path: Path, words: tuple[str, ...], policy: str
) -> None:
    found = ended(without_logs(tmp_path, policy), *words)
    shown = " ".join((found.out + found.error).split())
    assert found.code == 4
    assert "its .log files are gone: replication-offset-checkpoint says that it had" in shown
    assert "records up to offset 6" in shown
    assert "tart the broker" not in shown
    assert "all sound" not in shown


@pytest.mark.parametrize("option", [(), ("--as-kafka",)], ids=("", "as-kafka"))
def test_recovery_after_an_unclean_shutdown_does_not_begin_the_log_again(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    data = without_logs(tmp_path)
    (data / clean_shutdown.CLEAN_SHUTDOWN).unlink(missing_ok=True)
    before = sorted(path.name for path in (data / "t-0").iterdir())
    found = ended(data, "recover", "{data}", *option)
    assert found.code == 4
    assert "its .log files are gone" in " ".join(found.out.split())
    assert sorted(path.name for path in (data / "t-0").iterdir()) == before


@pytest.mark.parametrize(
    ("name", "ends", "starts"),
    [
        (checkpoint.REPLICATION, 0, 0),  # a log that never had a record
        (checkpoint.REPLICATION, 6, 6),  # all of them were deleted
    ],
)
@pytest.mark.parametrize("words", COMMANDS[:2], ids=" ".join)
def test_a_log_that_had_no_records_is_sound(
    tmp_path: Path, words: tuple[str, ...], name: str, ends: int, starts: int
) -> None:
    data = without_logs(tmp_path)
    (data / checkpoint.RECOVERY_POINT).unlink()
    checkpoint.write(str(data / name), {("t", 0): ends, ("u", 0): 6})
    checkpoint.write(str(data / checkpoint.LOG_START), {("t", 0): starts})
    assert ".log files are gone" not in ended(data, *words).out


def test_a_log_that_is_left_out_is_not_looked_for(tmp_path: Path) -> None:
    data = without_logs(tmp_path)
    found = ended(data, "run", "{data}", "--any-clock", "--include", "u")
    assert found.code == 0


def without_directory(tmp_path: Path, *more: bytes) -> Path:
    """A log directory with t-0; the metadata log places t-1 here, too, which had 6 records."""
    values = topic("t", A), partition(0, A), partition(1, A), POLICY
    data = cluster(tmp_path, *values, *more)
    identify(data, 1, B)
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6, ("t", 1): 6})
    return data


def missing(data: Path, **rules: Any) -> list[tuple[str, int]]:
    plan = api.plan([str(data)], api.Rules(as_of=NOW_MS, any_clock=True, **rules)).round_plan
    found = [log for log in plan.not_cleaned if log.reason_code == "log-missing"]
    assert all(log.status == "set-aside" for log in found)
    assert all("its directory is gone" in (log.reason or "") for log in found)
    return [(log.topic, log.partition) for log in found]


@pytest.mark.parametrize("words", [COMMANDS[3], COMMANDS[4]], ids=" ".join)
def test_a_directory_that_the_metadata_log_places_here_is_missed(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    data = without_directory(tmp_path)
    found = run_command(*(word.format(data=data) for word in words))
    shown = " ".join((found.out + found.error).split())
    assert found.code == 4
    assert "its directory is gone: replication-offset-checkpoint says that it had" in shown
    assert "tart the broker" not in shown


def test_a_directory_that_need_not_be_here_is_not_missed(tmp_path: Path) -> None:
    data = without_directory(tmp_path)
    assert missing(data) == [("t", 1)]
    identify(data, 1, A)  # the metadata log has the replica in directory B
    assert not missing(data)
    identify(data, 2, B)  # and of broker 1
    assert not missing(data)
    identify(data, 1, B)
    stray = data / "t-1.0123456789abcdef0123456789abcdef-stray"
    stray.mkdir()
    assert not missing(data)
    stray.rmdir()
    assert missing(data, include="t") == [("t", 1)]
    assert not missing(data, exclude="t")
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6, ("t", 1): 0})
    assert not missing(data)


def test_a_directory_of_a_deleted_topic_is_not_missed(tmp_path: Path) -> None:
    assert not missing(without_directory(tmp_path, removal(A)))
