"""Log directories of several brokers in one command: each broker is judged by itself."""

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from compactor import api
from compactor.errors import ConfigError, UsageError
from compactor.log_dirs.brokers import BrokerLogDirs, by_broker
from compactor.log_dirs.directory_state import MANIFEST
from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PartitionMetadata
from storage.log.cluster_metadata import METADATA_DIR
from tests.storage.log.test_cluster_metadata import A, batches, config, log, topic
from tests.support.file_states import state_of
from tests.support.local_command import run_command
from tests.support.made_log import keyed, make_partition


def identify(
    path: Path, node_id: int | None, cluster_id: str | None = "c", version: int = 1
) -> str:
    path.mkdir(parents=True, exist_ok=True)
    meta_properties.write(str(path), MetaProperties(version, cluster_id, node_id, None))
    return str(path)


def test_they_are_told_apart_by_number_and_cluster(tmp_path: Path) -> None:
    a1, b1, a2 = (identify(tmp_path / name, int(name[1])) for name in ("a1", "b1", "a2"))
    other = identify(tmp_path / "other", 1, "another")
    assert by_broker([a2, a1, b1, other], LOCAL) == (
        BrokerLogDirs("c", 2, (a2,)),
        BrokerLogDirs("c", 1, (a1, b1)),
        BrokerLogDirs("another", 1, (other,)),
    )


def test_one_that_does_not_say_belongs_to_the_only_broker(tmp_path: Path) -> None:
    (tmp_path / "silent").mkdir()
    silent, one = str(tmp_path / "silent"), identify(tmp_path / "one", 1)
    old = identify(tmp_path / "old", 1, None, version=0)
    assert by_broker([silent], LOCAL) == (BrokerLogDirs(None, None, (silent,)),)
    assert by_broker([silent, one, old], LOCAL) == (BrokerLogDirs("c", 1, (silent, one, old)),)
    with pytest.raises(ConfigError, match=r"silent: does not say which broker"):
        by_broker([one, silent, identify(tmp_path / "two", 2)], LOCAL)


def broker_in(root: Path, node_id: int, keys: str, *settings: bytes) -> Path:
    """A broker with its replica of t-0, and what the cluster's metadata log says."""
    data = root / f"broker-{node_id}"
    segments = {0: [keyed(0, keys)], 4: [keyed(4, keys)], 8: [keyed(8, "z")]}
    make_partition(data, segments, "t-0")
    for snapshot in data.rglob("*.snapshot"):
        snapshot.unlink()
    identify(data, node_id)
    partition_metadata.write(str(data / "t-0" / "partition.metadata"), PartitionMetadata(0, A))
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 9})
    (data / METADATA_DIR).mkdir()
    values = topic("t", A), config("cleanup.policy", "compact"), *settings
    log(data / METADATA_DIR, 0, batches(0, *values))
    return data


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The second has a setting of its own."""
    own = config("log.cleaner.delete.retention.ms", "7000", "2", 4)
    return broker_in(tmp_path, 1, "abab"), broker_in(tmp_path, 2, "abcd", own)


IN_PROCESS = api.RunOptions(in_process=True)
RULES = api.Rules(as_of=1_700_000_000_000, any_clock=True)


def test_a_round_does_for_each_what_one_of_its_own_would(two: tuple[Path, Path]) -> None:
    apart = []
    for data in two:
        alone = data.with_name(f"{data.name}-alone")
        shutil.copytree(data, alone)
        api.run([str(alone)], RULES, IN_PROCESS)
        apart.append({name: state.data for name, state in state_of(alone).items()})
    report = api.run([*map(str, two)], RULES, IN_PROCESS)
    found = [{name: state.data for name, state in state_of(data).items()} for data in two]
    assert found == apart
    cleaned = {log.log_dir: log for log in report.logs if log.status is api.LogStatus.CLEANED}
    assert {*cleaned} == {*map(str, two)}
    assert [cleaned[str(data)].delete_retention_ms for data in two] == [86_400_000, 7000]
    assert [cleaned[str(data)].counts.records_kept for data in two] == [2, 4]
    told = [notice for notice in report.notices if "broker 2 of cluster c" in notice]
    assert len(told) == 1


def test_a_plan_has_the_logs_of_all_the_dirtiest_first(two: tuple[Path, Path]) -> None:
    plan = api.plan([*map(str, two)], RULES)
    assert plan.refusals == ()
    logs = plan.round_plan.logs
    assert {log.log_dir for log in logs} == {*map(str, two)}
    assert [log.log_id for log in logs] == [0, 1]
    assert len(plan.round_plan.brokers) == 2
    assert [facts.judgement.log_dir for facts in plan.round_plan.facts] == [
        log.log_dir for log in logs
    ]
    alone = [api.plan([str(data)], RULES).round_plan for data in two]
    assert [*plan.round_plan.inventory] == [*alone[0].inventory, *alone[1].inventory]
    assert alone[0].brokers == ()


def test_one_log_is_explained_where_one_broker_has_it(two: tuple[Path, Path]) -> None:
    first, second = map(str, two)
    with pytest.raises(UsageError, match=r"broker 1 of cluster c and broker 2 of cluster c"):
        api.explain([first, second], "t-0", RULES)
    with pytest.raises(UsageError, match="no such log"):
        api.explain([first, second], "t-1", RULES)
    (two[1] / "t-0").rename(two[1] / "t-1")
    assert api.explain([first, second], "t-1", RULES).log_dir == second


def test_configs_shows_the_settings_of_each_broker(two: tuple[Path, Path]) -> None:
    """A topic of both has a line for each; one broker's directories are shown as one."""
    found = api.configs(list(map(str, two)))
    names = [broker.name for broker in by_broker(list(map(str, two)), LOCAL)]
    assert list(dict.fromkeys(topic.broker for topic in found)) == names
    for number, path in enumerate(two):
        alone = api.configs(str(path))
        own = [topic for topic in found if topic.broker == names[number]]
        assert [topic._replace(broker=None) for topic in own] == alone != []
    ended = run_command("configs", *two, found[0].topic)
    assert ended.code == 0
    assert all(f"{name}:" in ended.out for name in names)
    with pytest.raises(UsageError, match=r"none: there is no such topic in .* or "):
        api.configs(list(map(str, two)), "none")


def test_properties_are_of_one_broker(two: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "server.properties").touch()
    rules = replace(RULES, server_properties=str(tmp_path / "server.properties"))
    with pytest.raises(UsageError, match=r"is of one broker.*broker 1.*broker 2"):
        api.plan([*map(str, two)], rules)
    assert api.plan([str(two[0])], rules).round_plan.logs


def test_settings_are_read_once_for_all(two: tuple[Path, Path], tmp_path: Path) -> None:
    """They may come through a pipe, which is empty the second time."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = '{"t": {"delete.retention.ms": "5000"}}'
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    plan = api.plan([*map(str, two)], replace(RULES, topic_configs=str(pipe)))
    writer.join()
    assert [log.delete_retention_ms for log in plan.round_plan.logs] == [5000, 5000]


def test_each_broker_has_its_copy(two: tuple[Path, Path], tmp_path: Path) -> None:
    copies = [tmp_path / "copy-1", tmp_path / "copy-2"]
    before = [state_of(data) for data in two]
    options = replace(IN_PROCESS, output=(*map(str, copies),))
    api.run([*map(str, two)], RULES, options)
    assert [state_of(data) for data in two] == before
    api.run([*map(str, two)], RULES, IN_PROCESS)
    for data, copy in zip(two, copies, strict=True):
        found = {name: state.data for name, state in state_of(copy).items() if name != MANIFEST}
        assert found == {name: state.data for name, state in state_of(data).items()}
