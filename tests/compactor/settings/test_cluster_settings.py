"""What a broker's own files say of its topics, and what comes before what."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from compactor import api
from compactor.command_line.cli import main
from compactor.errors import ConfigError, RefusedError, UsageError
from compactor.inspection.topic_settings import ConfigEntry
from compactor.settings.cluster_settings import (
    ClusterSettings,
    MetadataSource,
    read_cluster_settings,
    require_all_log_dirs,
)
from compactor.settings.config import Config, load_config
from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.kafka_settings import Value
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PartitionMetadata, encode_uuid
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import NOW_MS, Shape, build
from tests.storage.log.test_cluster_metadata import A, B, batches, config, log, partition, topic

OTHER = UUID(int=5 << 64 | 6)


def cluster(tmp_path: Path, *values: bytes, node_id: int = 1, properties: str = "") -> Path:
    """A log directory with a metadata log that says this, and logs of topic t (id A)."""
    data = tmp_path / "data"
    build(data, Shape("t"))
    identify(data, node_id, A)
    partition_metadata.write(str(data / "t-0" / "partition.metadata"), PartitionMetadata(0, A))
    (data / METADATA_DIR).mkdir()
    log(data / METADATA_DIR, 0, batches(0, *values))
    (tmp_path / "server.properties").write_text(properties)
    return data


def identify(log_dir: Path, node_id: int, directory_id: UUID) -> None:
    properties = MetaProperties(1, "cluster", node_id, encode_uuid(directory_id))
    meta_properties.write(str(log_dir), properties)


AS_GIVEN = MetadataSource()


def settings(data: Path, source: MetadataSource = AS_GIVEN) -> ClusterSettings:
    found = read_cluster_settings([str(data)], source, LOCAL)
    assert found is not None
    return found


def configured(data: Path, properties: bool = False) -> Config:
    file = str(data.parent / "server.properties") if properties else None
    return load_config(cluster=settings(data, MetadataSource(server_properties=file)))


def values(config: Config, name: str) -> list[tuple[str, Value]]:
    """Place and value of one setting of topic t, in the order in which the later counts."""
    return [
        (layer.place, layer.values[name]) for layer in config.layers("t") if name in layer.values
    ]


def registration(broker: int, *directories: UUID) -> bytes:
    head = b"\1\0\3" + broker.to_bytes(4, "big") + b"\0" + bytes(16) + bytes(8) + b"\1\1\0\1\0"
    listed = bytes([len(directories) + 1]) + b"".join(each.bytes for each in directories)
    return head + b"\1\0" + bytes([len(listed)]) + listed


def test_topic_comes_before_broker_before_cluster_before_file_before_default(
    tmp_path: Path,
) -> None:
    name = "log.cleaner.delete.retention.ms"
    data = cluster(
        tmp_path,
        topic("t", A),
        config("delete.retention.ms", "5"),
        config(name, "4", "1", 4),
        config(name, "3", "", 4),
        config(name, "9", "2", 4),  # another broker's
        properties=f"{name}=2\n",
    )
    found = configured(data, properties=True)
    assert values(found, "delete.retention.ms") == [("broker 1", 4), ("the topic itself", 5)]
    assert found.topic("t").delete_retention_ms == 5
    assert found.topic("other").delete_retention_ms == 4
    assert settings(data).layers[1:] == (
        ("the cluster's brokers", {}),
        ("broker 1", {"delete.retention.ms": 4}),
    )


def test_the_clusters_default_counts_where_a_broker_says_nothing(tmp_path: Path) -> None:
    data = cluster(
        tmp_path,
        topic("t", A),
        config("log.retention.bytes", "3", "", 4),
        properties="log.retention.bytes=2\nlog.index.interval.bytes=77\n",
    )
    found = configured(data, properties=True)
    place = str(tmp_path / "server.properties")
    assert values(found, "retention.bytes") == [("the cluster's brokers", 3)]
    assert values(found, "index.interval.bytes") == [(place, 77)]


@pytest.mark.parametrize(
    ("properties", "expected_ms"),
    [
        ("log.retention.hours=2", 7_200_000),
        ("log.retention.hours=2\nlog.retention.minutes=3", 180_000),
        ("log.retention.hours=2\nlog.retention.minutes=3\nlog.retention.ms=4", 4),
        ("log.retention.hours=-1", -1),
    ],
)
def test_the_finer_unit_decides(tmp_path: Path, properties: str, expected_ms: int) -> None:
    data = cluster(tmp_path, topic("t", A), properties=properties)
    assert configured(data, properties=True).topic("t").retention_ms == expected_ms


def test_a_finer_unit_counts_wherever_it_was_set(tmp_path: Path) -> None:
    """log.retention.ms of the cluster's default hides the hours of the broker itself."""
    hours = config("log.retention.hours", "1", "1", 4)
    data = cluster(tmp_path, topic("t", A), hours, config("log.retention.ms", "7", "", 4))
    assert values(configured(data), "retention.ms") == [("the cluster's brokers", 7)]


def test_a_topic_that_says_nothing_is_deleted_by_kafkas_default(tmp_path: Path) -> None:
    found = configured(cluster(tmp_path, topic("t", A))).topic("t")
    assert (found.cleanup_policy, found.policy_source) == (("delete",), "Kafka's default")


def test_the_lifetime_of_producer_ids_is_the_brokers(tmp_path: Path) -> None:
    data = cluster(tmp_path, config("producer.id.expiration.ms", "55", "", 4))
    found = settings(data)
    assert load_config(cluster=found).producer_id_expiration_ms == 55
    told = {"producer.id.expiration.ms": "66"}
    assert load_config(settings=told, cluster=found).producer_id_expiration_ms == 66


COMPACT_EVERYTHING = {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("own", "is_compacted"),
    [
        ((), True),
        ((config("cleanup.policy", "compact"),), True),
        ((config("cleanup.policy", "delete"),), False),
    ],
)
def test_no_flag_compacts_a_topic_that_says_delete(
    tmp_path: Path, own: tuple[bytes, ...], is_compacted: bool
) -> None:
    found = settings(cluster(tmp_path, topic("t", A), *own))
    pattern = tmp_path / "c.toml"
    pattern.write_text('[[topics]]\nmatch = "t"\n"cleanup.policy" = "compact"\n')
    by_set = load_config(settings=COMPACT_EVERYTHING, cluster=found)
    by_pattern = load_config(str(pattern), cluster=found)
    by_topic = load_config(topic_configs={"t": COMPACT_EVERYTHING}, cluster=found)
    assert by_set.topic("t").is_compacted is is_compacted
    assert by_pattern.topic("t").is_compacted is is_compacted
    assert by_topic.topic("t").is_compacted


def test_other_settings_of_a_topic_that_says_delete_are_overridden(tmp_path: Path) -> None:
    own = config("cleanup.policy", "delete"), config("segment.bytes", "100")
    found = settings(cluster(tmp_path, topic("t", A), *own))
    changed = load_config(settings=COMPACT_EVERYTHING | {"segment.bytes": "5"}, cluster=found)
    assert changed.topic("t").segment_bytes == 5


def reason(data: Path, **rules: Any) -> str:
    by = api.Rules(as_of=NOW_MS, any_clock=True, **rules)
    left = api.plan([str(data)], by).round_plan.not_cleaned
    (found,) = [each for each in left if each.topic == "t"]
    return found.reason or ""


POLICY = config("cleanup.policy", "compact")


def test_a_compacted_topic_is_planned_without_any_configuration(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY)
    found = api.plan([str(data)], api.Rules(as_of=NOW_MS, any_clock=True))
    assert [(log.topic, log.partition) for log in found.round_plan.logs] == [("t", 0)]


@pytest.mark.parametrize("id_beside", [OTHER, A, None])
def test_of_one_log_in_two_directories_that_of_an_earlier_topic_is_a_stray(
    tmp_path: Path, id_beside: UUID | None
) -> None:
    """A broker renames it and goes on with the other, which is cleaned; where both may be the
    topic's, neither is."""
    data, beside = cluster(tmp_path, topic("t", A), POLICY), tmp_path / "beside"
    build(beside, Shape("t"))
    identify(beside, 1, B)
    path = beside / "t-0" / "partition.metadata"
    path.unlink(missing_ok=True)
    if id_beside is not None:
        partition_metadata.write(str(path), PartitionMetadata(0, id_beside))
    found = api.plan([str(data), str(beside)], api.Rules(as_of=NOW_MS, any_clock=True)).round_plan
    left = [(r.log_dir, r.reason_code) for r in found.not_cleaned if r.topic == "t"]
    if id_beside == OTHER:
        assert [log.log_dir for log in found.logs] == [str(data)]
        assert left == [(str(beside), "topic-id-mismatch")]
    else:
        assert found.logs == ()
        assert left == [(str(each), "in-two-log-dirs") for each in sorted([data, beside])]


def stale_file(tmp_path: Path, **values: str) -> str:
    named = {name.replace("_", "."): value for name, value in values.items()}
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"t": named}))
    return str(path)


@pytest.mark.parametrize(
    ("in_file", "own", "is_set_aside"),
    [
        ("compact", "delete", True),
        ("compact", "compact,delete", True),
        ("compact,delete", "compact", True),
        ("delete", "compact", True),
        ("compact", "compact", False),
        ("delete,compact", "compact,delete", False),
        ("delete", "delete", False),
        ("", "delete", False),
    ],
)
def test_a_file_that_contradicts_the_topics_own_policy_sets_the_topic_aside(
    tmp_path: Path, in_file: str, own: str, is_set_aside: bool
) -> None:
    data = cluster(tmp_path, topic("t", A), config("cleanup.policy", own))
    file = stale_file(tmp_path, cleanup_policy=in_file)
    rules = api.Rules(as_of=NOW_MS, any_clock=True, topic_configs=file)
    planned = api.plan([str(data)], rules).round_plan
    set_aside = [
        (log.topic, log.reason_code) for log in planned.not_cleaned if log.status == "set-aside"
    ]
    assert set_aside == ([("t", "settings-disagree")] if is_set_aside else [])
    if is_set_aside:
        assert not planned.logs
        told = reason(data, topic_configs=file)
        assert file in told
        assert str(data / METADATA_DIR) in told
        assert f"cleanup.policy is {in_file}" in told
        assert f"and {own} in the topic's own entry" in told


def test_a_topic_that_is_named_is_compacted_as_the_file_says(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), config("cleanup.policy", "delete"))
    file = stale_file(tmp_path, cleanup_policy="compact")
    rules = api.Rules(as_of=NOW_MS, any_clock=True, topic_configs=file)
    trusted = api.plan([str(data)], replace(rules, trust_topic_configs=("t",)))
    assert [log.topic for log in trusted.round_plan.logs] == ["t"]
    another = api.plan([str(data)], replace(rules, trust_topic_configs=("other",)))
    assert not another.round_plan.logs
    assert another.warnings == ("--trust-topic-configs: --topic-configs does not have other",)


def test_a_policy_of_an_earlier_topic_of_the_name_is_no_disagreement(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", OTHER), config("cleanup.policy", "delete"))
    file = stale_file(tmp_path, cleanup_policy="compact")
    assert reason(data, topic_configs=file).startswith("its topic was deleted, and one of the same")


def test_what_is_typed_is_no_disagreement(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), config("cleanup.policy", "delete"))
    said = reason(data, settings=COMPACT_EVERYTHING, include="t")
    assert said.startswith("cleanup.policy is delete, so it is not compacted (set by the topic")


def test_other_settings_that_differ_are_one_warning(tmp_path: Path) -> None:
    own = [config(name, "7") for name in ("retention.ms", "segment.bytes", "retention.bytes")]
    data = cluster(tmp_path, topic("t", A), POLICY, *own, config("delete.retention.ms", "7"))
    file = stale_file(
        tmp_path,
        retention_ms="8",
        segment_bytes="8",
        retention_bytes="8",
        delete_retention_ms="8",
        min_compaction_lag_ms="0",
    )
    rules = api.Rules(as_of=NOW_MS, any_clock=True, topic_configs=file)
    assert api.plan([str(data)], rules).warnings == (
        "--topic-configs differs in 4 settings from the topics' own entries in the metadata log, "
        "and the file decides: delete.retention.ms of t (8, not 7), retention.bytes of t "
        "(8, not 7), retention.ms of t (8, not 7) and 1 more",
    )


BROKERS_COMPACT = config("log.cleanup.policy", "compact", "", 4)


@pytest.mark.parametrize("lines", [(), (POLICY, config("cleanup.policy", None))])
def test_a_topic_that_a_file_alone_compacts_is_a_warning(
    tmp_path: Path, lines: tuple[bytes, ...]
) -> None:
    """It has no entry, or none any more: the policy is Kafka's default by all that is known."""
    data = cluster(tmp_path, topic("t", A), *lines)
    file = stale_file(tmp_path, cleanup_policy="compact")
    rules = api.Rules(as_of=NOW_MS, any_clock=True, topic_configs=file)
    (warning,) = api.plan([str(data)], rules).warnings
    assert warning == (
        "--topic-configs compacts 1 topic without a cleanup.policy of its own in the metadata log, "
        "where that is delete: t. If an entry was removed since, correct the file; if not: "
        "--trust-topic-configs TOPIC"
    )
    trusted = replace(rules, trust_topic_configs=("t",))
    assert api.plan([str(data)], trusted).warnings == ()


@pytest.mark.parametrize("lines", [(POLICY,), (BROKERS_COMPACT,)])
def test_a_topic_that_the_metadata_log_compacts_is_none(
    tmp_path: Path, lines: tuple[bytes, ...]
) -> None:
    data = cluster(tmp_path, topic("t", A), *lines)
    rules = api.Rules(
        as_of=NOW_MS, any_clock=True, topic_configs=stale_file(tmp_path, cleanup_policy="compact")
    )
    assert api.plan([str(data)], rules).warnings == ()


def test_a_log_of_a_deleted_topic_is_passed_over(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("other", B))
    said = "its topic was deleted: the cluster's metadata log does not have it"
    assert reason(data) == said
    assert reason(data, settings=COMPACT_EVERYTHING, include="t") == said


BROKERS_OWN = config("log.cleaner.delete.retention.ms", "5", "1", 4)


def test_which_topics_there_are_is_known_though_the_broker_is_not(tmp_path: Path) -> None:
    """Single brokers have settings, and nothing says which broker this is: a whole metadata log
    still says that a topic was deleted, or created anew."""
    deleted = cluster(tmp_path / "deleted", topic("other", B), BROKERS_OWN)
    anew = cluster(tmp_path / "anew", topic("t", OTHER), POLICY, BROKERS_OWN)
    for data, said in ((deleted, "its topic was deleted: "), (anew, "its topic was deleted, and")):
        (data / "meta.properties").unlink()
        assert reason(data, settings=COMPACT_EVERYTHING, include="t").startswith(said)
    assert reason(deleted).startswith("its topic was deleted: ")


def test_a_log_of_a_topic_that_was_created_anew_is_passed_over(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", OTHER), POLICY)
    assert reason(data) == (
        "its topic was deleted, and one of the same name was created since: its id is "
        "AAAAAAAAAAEAAAAAAAAAAg, and that of today's AAAAAAAAAAUAAAAAAAAABg"
    )


def test_a_log_without_a_note_of_its_topic_is_passed_over(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY)
    (data / "t-0" / "partition.metadata").unlink()
    assert reason(data).startswith("it has no partition.metadata: a broker would set it aside")


def test_a_damaged_note_of_a_topic_sets_its_log_aside(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY)
    (data / "t-0" / "partition.metadata").write_text("version: 0\n")
    assert (
        "partition.metadata, byte 11: expected a line each with version and topic_id, found 1"
        in reason(data)
    )


def test_without_the_metadata_log_nothing_is_known(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY)
    assert reason(data, no_metadata=True).startswith("cleanup.policy is not known")


def test_the_metadata_log_may_stand_elsewhere(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (data / METADATA_DIR).rename(elsewhere / METADATA_DIR)
    assert read_cluster_settings([str(data)], MetadataSource(), LOCAL) is None
    by_parent = settings(data, MetadataSource(str(elsewhere)))
    assert by_parent == settings(data, MetadataSource(str(elsewhere / METADATA_DIR)))
    assert load_config(cluster=by_parent).topic("t").is_compacted
    with pytest.raises(ConfigError, match=r"metadata .*none: there is no such directory"):
        settings(data, MetadataSource(str(tmp_path / "none")))


def test_two_metadata_logs_are_one_too_many(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A))
    other = tmp_path / "other"
    (other / METADATA_DIR).mkdir(parents=True)
    with pytest.raises(ConfigError, match="say with metadata which"):
        read_cluster_settings([str(data), str(other)], MetadataSource(), LOCAL)


def test_a_log_directory_that_was_not_given_is_a_reason_to_refuse(tmp_path: Path) -> None:
    """Ids below 100 stand for no directory: lost, or not yet assigned."""
    logs = [partition(number, A) for number in (3, 0, 1, 2)]  # all of them in B
    data = cluster(tmp_path, topic("t", A), *logs, POLICY, registration(1, A, B, UUID(int=2)))
    found = settings(data)
    with pytest.raises(RefusedError) as raised:
        require_all_log_dirs(found, [str(data)], LOCAL)
    with_logs = "with 4 logs: t-0, t-1, t-2 and 1 more"
    assert f"1 was not given (directory.id {encode_uuid(B)} {with_logs}):" in str(raised.value)
    rules = api.Rules(as_of=NOW_MS, any_clock=True)
    said = [each for each in api.plan([str(data)], rules).refusals if "not given" in each]
    assert len(said) == 1
    lifted = api.plan([str(data)], replace(rules, all_log_dirs_given=True)).refusals
    assert not [each for each in lifted if "not given" in each]
    with pytest.raises(RefusedError, match="not given"):
        api.run([str(data)], replace(rules, assume_fully_replicated=True))
    identify(build_empty(tmp_path / "second"), 1, B)
    require_all_log_dirs(found, [str(data), str(tmp_path / "second")], LOCAL)


def build_empty(path: Path) -> Path:
    path.mkdir()
    return path


def test_directories_of_another_broker_are_not_missed(tmp_path: Path) -> None:
    data = cluster(tmp_path, registration(2, A, B))
    require_all_log_dirs(settings(data), [str(data)], LOCAL)


def test_a_metadata_log_that_cannot_be_read_stops_no_command(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), b"\1\4\1")
    assert "ConfigRecord of version 1" in reason(data)
    assert "ConfigRecord of version 1" in settings(data).notices[0]
    assert [found.topic for found in api.configs(str(data))] == ["t"]


READ_TO_2 = "the metadata log is read up to offset 2: "
TO_DELETE = batches(2, config("cleanup.policy", "delete"))
ONE_BIT_FLIPPED = TO_DELETE[:-2] + bytes([TO_DELETE[-2] ^ 1]) + TO_DELETE[-1:]


def damaged_cluster(tmp_path: Path, last_batch: bytes, is_clean: bool) -> Path:
    """The broker's metadata log says compact, and delete in a last batch that is not whole."""
    data = cluster(tmp_path, topic("t", A), POLICY)
    log(data / METADATA_DIR, 0, batches(0, topic("t", A), POLICY) + last_batch)
    (data / CLEAN_SHUTDOWN).unlink(missing_ok=True)
    if is_clean:
        (data / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":0}')
    (data / checkpoint.REPLICATION).touch()  # a broker writes it every five seconds
    return data


def looked_at(data: Path, **rules: Any) -> tuple[str | None, bool]:
    """The reason code of t-0 (None: it is cleaned), and whether a warning says how much is read."""
    found = api.plan([str(data)], api.Rules(as_of=NOW_MS, any_clock=True, **rules))
    left = [each for each in found.round_plan.not_cleaned if each.topic == "t"]
    says = any(each.startswith(READ_TO_2) for each in found.warnings)
    return (left[0].reason_code if left else None), says


@pytest.mark.parametrize(
    ("last_batch", "is_clean", "code"),
    [
        (b"", True, None),
        (TO_DELETE[:-1], False, None),  # as of a broker that runs or was killed
        (TO_DELETE[:-1], True, "metadata-damaged"),
        (ONE_BIT_FLIPPED, True, "metadata-damaged"),
        (ONE_BIT_FLIPPED, False, "metadata-damaged"),
        (bytes(100), False, "metadata-damaged"),
    ],
    ids=["whole", "torn", "torn-clean", "flipped-clean", "flipped", "zeros"],
)
def test_a_damaged_end_of_the_metadata_log_decides_no_removal(
    tmp_path: Path, last_batch: bytes, is_clean: bool, code: str | None
) -> None:
    data = damaged_cluster(tmp_path, last_batch, is_clean)
    assert looked_at(data) == (code, last_batch != b"")
    plan = api.plan([str(data)], api.Rules(as_of=NOW_MS, any_clock=True)).round_plan
    left = [each.status.value for each in plan.not_cleaned if each.topic == "t"]
    assert left == ["set-aside"] * (code is not None)


def test_what_another_source_says_of_the_topic_is_enough_where_metadata_is_damaged(
    tmp_path: Path,
) -> None:
    data = damaged_cluster(tmp_path, ONE_BIT_FLIPPED, is_clean=True)
    pattern = tmp_path / "c.toml"
    pattern.write_text('[[topics]]\nmatch = "t"\n"cleanup.policy" = "compact"\n')
    by_default = tmp_path / "d.toml"
    by_default.write_text('[defaults]\n"cleanup.policy" = "compact"\n')
    assert looked_at(data, topic_configs={"t": COMPACT_EVERYTHING}) == (None, True)
    assert looked_at(data, settings=COMPACT_EVERYTHING, include="t") == (None, True)
    assert looked_at(data, config=str(pattern)) == (None, True)
    assert looked_at(data, topic_configs={"t": {"segment.bytes": "9"}})[0] == "metadata-damaged"
    assert looked_at(data, topic_configs={"o": COMPACT_EVERYTHING})[0] == "metadata-damaged"
    assert looked_at(data, config=str(by_default))[0] == "metadata-damaged"
    assert looked_at(data, no_metadata=True) == ("unknown-policy", False)
    assert looked_at(data, exclude="t")[0] == "left-out"


def test_every_command_says_how_far_the_metadata_log_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, as a warning on standard error or in the table."""
    data = str(damaged_cluster(tmp_path, TO_DELETE[:-1], is_clean=False))
    log_of_t = [data, "t-0", "--any-clock"]
    commands = [
        *(["configs", data], ["plan", data], ["explain", *log_of_t], ["run", "--dry-run", data]),
        *(["log", "offsets", data, "t-0"], ["log", "read", data, "t-0"]),
    ]
    for words in commands:
        main(words)
        captured = capsys.readouterr()
        shown = " ".join((captured.out + captured.err).split())
        said = "warning: " + READ_TO_2
        assert shown.lower().count(said) == 1, words


@pytest.mark.parametrize(("is_clean", "code"), [(True, 4), (False, 0)])
def test_verify_says_it_in_a_finding_or_a_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool, code: int
) -> None:
    """A finding where a broker's start would make logs stray ones."""
    data = damaged_cluster(tmp_path, TO_DELETE[:-1], is_clean)
    assert main(["verify", str(data)]) == code
    table = capsys.readouterr().out.partition('{"schema_version"')[0].partition("Next:")[0]
    shown = " ".join(table.split()).lower()
    assert shown.count(READ_TO_2) == 1
    assert main(["verify", str(cluster(tmp_path / "whole", topic("t", A)))]) == 0
    assert "the metadata log" not in capsys.readouterr().out.lower()


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_empty_metadata_log_proves_nothing(tmp_path: Path, is_clean: bool) -> None:
    data = damaged_cluster(tmp_path, b"", is_clean)
    for content in (b"", batches(0, config("x", "1"))):
        log(data / METADATA_DIR, 0, content)
        assert looked_at(data)[0] == "metadata-damaged"
        assert looked_at(data, topic_configs={"t": COMPACT_EVERYTHING})[0] is None
        (warning,) = settings(data).notices
        assert "has no topic and no broker: it proves nothing. Not checked: " in warning
    log(data / METADATA_DIR, 0, batches(0, registration(1, A)))
    assert looked_at(data)[0] == "topic-deleted"


def test_an_empty_meta_properties_switches_no_check_off_in_silence(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY, registration(1, A, B))
    assert settings(data).notices == ()
    (data / "meta.properties").write_bytes(b"")
    (warning,) = settings(data).notices
    assert "not checked whether all of its log directories were given" in warning


def test_a_damaged_metadata_log_proves_no_topic_deleted(tmp_path: Path) -> None:
    """Nor created anew: the creation of this one may be in what cannot be read."""
    compact = {"t": COMPACT_EVERYTHING}
    data = cluster(tmp_path, topic("other", B))
    log(data / METADATA_DIR, 0, batches(0, topic("other", B), POLICY) + ONE_BIT_FLIPPED)
    assert looked_at(data)[0] == "metadata-damaged"
    assert looked_at(data, topic_configs=compact) == (None, True)
    log(data / METADATA_DIR, 0, batches(0, topic("t", B), POLICY) + ONE_BIT_FLIPPED)
    assert looked_at(data, topic_configs=compact)[0] == "metadata-damaged"


def test_the_end_of_another_nodes_metadata_log_is_torn_whether_this_broker_stopped_or_not(
    tmp_path: Path,
) -> None:
    data = damaged_cluster(tmp_path, TO_DELETE[:-1], is_clean=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (data / METADATA_DIR).rename(elsewhere / METADATA_DIR)
    assert looked_at(data, metadata=str(elsewhere)) == (None, True)
    identify(elsewhere, 2, B)
    assert looked_at(data, metadata=str(elsewhere)) == (None, True)
    identify(elsewhere, 1, B)  # of this broker, whose metadata.log.dir it is
    assert looked_at(data, metadata=str(elsewhere)) == ("metadata-damaged", True)


def test_properties_that_cannot_be_read(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), properties="log.retention.hours=soon")
    with pytest.raises(ConfigError, match=r"log.retention.hours = 'soon': expected a whole number"):
        configured(data, properties=True)
    with pytest.raises(ConfigError, match=r"server_properties .*: No such file"):
        settings(data, MetadataSource(server_properties=str(tmp_path / "none")))


def test_configs_shows_every_topic_and_who_set_what(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), POLICY, config("later.than.today", "x"))
    (found,) = api.configs(str(data))
    assert (found.topic, found.is_deleted) == ("t", False)
    own = "the topic itself"
    assert found.entries == (
        ConfigEntry("cleanup.policy", ("compact",), own),
        ConfigEntry("later.than.today", None, own, is_known=False),
    )
    (whole,) = api.configs(str(data), "t")
    assert len(whole.entries) > 20
    assert ConfigEntry("segment.bytes", 1 << 30, "Kafka's default") in whole.entries
    with pytest.raises(UsageError, match="none: there is no such topic"):
        api.configs(str(data), "none")
