"""Names and limits of topic configuration (C-20.2, C-20.3), as LogConfig of Kafka 4.3.1 lists."""

import json

import pytest

from compactor.errors import ConfigError
from compactor.settings.topic_config import topic_config
from storage.formats.kafka_settings import KNOWN_ELSEWHERE, SETTINGS, check_values

MAX_INT = 2147483647
MAX_LONG = 9223372036854775807

# LogConfig.configNames() of Kafka 4.3.1, printed by Kafka.
KAFKAS_NAMES = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas index.interval.bytes internal.segment.bytes
leader.replication.throttled.replicas local.retention.bytes local.retention.ms
max.compaction.lag.ms max.message.bytes message.timestamp.after.max.ms
message.timestamp.before.max.ms message.timestamp.type min.cleanable.dirty.ratio
min.compaction.lag.ms min.insync.replicas preallocate remote.log.copy.disable
remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms segment.bytes
segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
""".split()

# LogConfig.configNames() of Kafka 4.4.0 has these as well.
OF_4_4 = """
errors.deadletterqueue.group.enable max.decompressed.message.bytes remote.copy.lag.bytes
remote.copy.lag.ms
""".split()

# Name, default, least, most: from the same list; but segment.bytes goes below 1 MiB here.
KAFKAS_NUMBERS = [
    ("compression.lz4.level", 9, 1, 17),
    ("compression.zstd.level", 3, -131072, 22),
    ("delete.retention.ms", 86400000, 0, MAX_LONG),
    ("file.delete.delay.ms", 60000, 0, MAX_LONG),
    ("flush.messages", MAX_LONG, 1, MAX_LONG),
    ("flush.ms", MAX_LONG, 0, MAX_LONG),
    ("index.interval.bytes", 4096, 0, MAX_INT),
    ("internal.segment.bytes", None, -MAX_INT - 1, MAX_INT),
    ("max.compaction.lag.ms", MAX_LONG, 1, MAX_LONG),
    ("max.decompressed.message.bytes", 2147483639, 1, 2147483639),  # of 4.2.2 and 4.4.0
    ("max.message.bytes", 1048588, 0, MAX_INT),
    ("message.timestamp.after.max.ms", 3600000, 0, MAX_LONG),
    ("message.timestamp.before.max.ms", MAX_LONG, 0, MAX_LONG),
    ("min.cleanable.dirty.ratio", 0.5, 0, 1),
    ("min.compaction.lag.ms", 0, 0, MAX_LONG),
    ("retention.bytes", -1, -MAX_LONG - 1, MAX_LONG),
    ("retention.ms", 604800000, -1, MAX_LONG),
    ("segment.bytes", 1073741824, 1, MAX_INT),
    ("segment.index.bytes", 10485760, 4, MAX_INT),
    ("segment.jitter.ms", 0, 0, MAX_LONG),
    ("segment.ms", 604800000, 1, MAX_LONG),
]


def test_every_name_of_kafka_is_known() -> None:
    assert {*SETTINGS, *KNOWN_ELSEWHERE} >= {*KAFKAS_NAMES, *OF_4_4}


@pytest.mark.parametrize(("name", "default", "least", "most"), KAFKAS_NUMBERS)
def test_numbers_have_kafkas_defaults_and_limits(
    name: str, default: float | None, least: float, most: float
) -> None:
    """C-20.2."""
    assert SETTINGS[name].default == default
    for value in (least, most):
        assert check_values({name: str(value)}, "here") == {name: value}
    for value in (least - 1, most + 1):
        with pytest.raises(ConfigError, match=f"^here: {name} = '{value}': expected a "):
            check_values({name: str(value)}, "here")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "1.5"),
        ("segment.bytes", ""),
        ("segment.bytes", "1_000"),
        ("segment.bytes", "1GB"),
        ("segment.bytes", True),
        ("segment.bytes", 1e6),
        ("segment.bytes", [1]),
        ("segment.bytes", None),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "inf"),
        ("min.cleanable.dirty.ratio", "half"),
        ("preallocate", "yes"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", 0),
        ("compression.gzip.level", 10),
        ("message.timestamp.type", "createtime"),
        ("cleanup.policy", "compaction"),
        ("cleanup.policy", "compact,"),
        ("cleanup.policy", ","),
        ("cleanup.policy", "compact;delete"),
        ("cleanup.policy", 7),
        ("cleanup.policy", ["compact", 7]),
    ],
)
def test_impossible_values_are_refused_by_name(name: str, value: object) -> None:
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    with pytest.raises(ConfigError) as caught:
        check_values({name: value}, "topics.json: topic t")
    assert str(caught.value).startswith(f"topics.json: topic t: {name} = {shown}: expected ")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", ("compact",)),
        ("delete", ("delete",)),
        ("delete,compact", ("compact", "delete")),
        (" compact , delete ", ("compact", "delete")),
        (["compact"], ("compact",)),
        ("", ()),  # neither: official since 4.2 (C-20.2)
        ([], ()),
    ],
)
def test_cleanup_policy_is_a_list(policy: object, expected: tuple[str, ...]) -> None:
    assert check_values({"cleanup.policy": policy}, "here") == {"cleanup.policy": expected}


def test_values_may_be_text_or_typed() -> None:
    assert check_values({"segment.bytes": " 100 ", "preallocate": "TRUE"}, "here") == {
        "segment.bytes": 100,
        "preallocate": True,
    }
    assert check_values({"segment.bytes": 100, "min.cleanable.dirty.ratio": 1}, "here") == {
        "segment.bytes": 100,
        "min.cleanable.dirty.ratio": 1.0,
    }


def test_an_unknown_name_is_refused_and_a_near_one_suggested() -> None:
    with pytest.raises(ConfigError, match=r"named 'segment\.byte'; did you mean segment\.bytes\?"):
        check_values({"segment.byte": "1"}, "here")
    with pytest.raises(ConfigError, match=r"^here: no topic configuration is named 'zzz'$"):
        check_values({"zzz": "1"}, "here")


def test_names_without_a_bearing_on_cleaning_pass() -> None:
    assert check_values({"min.insync.replicas": "2"}, "here") == {}


def test_a_topic_without_values_has_kafkas_defaults_and_no_policy() -> None:
    config = topic_config({}, "", "topic t")
    assert config.cleanup_policy is None
    assert not config.is_compacted
    assert (config.segment_bytes, config.delete_retention_ms) == (1073741824, 86400000)
    assert (config.min_cleanable_dirty_ratio, config.index_interval_bytes) == (0.5, 4096)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (0, MAX_LONG)
    assert config.segment_index_bytes == 10485760


def test_internal_segment_bytes_overrides() -> None:
    values = check_values({"internal.segment.bytes": "700", "segment.bytes": "2000000"}, "here")
    assert topic_config(values, "", "topic t").segment_bytes == 700


def test_lags_that_contradict_each_other_are_refused() -> None:
    """C-20.3; equal ones are fine."""
    values = check_values({"min.compaction.lag.ms": 5, "max.compaction.lag.ms": 5}, "here")
    assert topic_config(values, "", "topic t").min_compaction_lag_ms == 5
    values["min.compaction.lag.ms"] = 6
    with pytest.raises(ConfigError, match=r"^topic t: min\.compaction\.lag\.ms 6 is above max"):
        topic_config(values, "", "topic t")


@pytest.mark.parametrize(
    ("policy", "is_compacted", "has_retention"),
    [
        (("compact",), True, False),
        (("compact", "delete"), True, True),
        (("delete",), False, True),
        ((), False, False),
    ],
)
def test_policies(policy: tuple[str, ...], is_compacted: bool, has_retention: bool) -> None:
    config = topic_config({"cleanup.policy": policy}, "", "topic t")
    assert (config.is_compacted, config.has_retention) == (is_compacted, has_retention)
