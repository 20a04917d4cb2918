"""Settings from files and flags: layers, what is refused, and conf/compactor.toml itself."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from compactor.errors import ConfigError
from compactor.settings.cluster_settings import BROKER_SETTINGS
from compactor.settings.config import (
    Config,
    load_config,
    parse_toml,
    parse_topic_configs,
    with_filters,
)
from storage.formats.kafka_settings import SETTINGS, Effect

SHIPPED = Path(__file__).parents[3] / "conf" / "compactor.toml"


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_without_any_file_the_policy_is_unknown_but_of_the_brokers_own_topics() -> None:
    config = load_config()
    assert config.topic("orders").cleanup_policy is None
    for topic in ("__consumer_offsets", "__transaction_state"):  # C-20.4
        assert config.topic(topic).cleanup_policy == ("compact",)
        assert config.topic(topic).segment_bytes == 104857600
    assert config.producer_id_expiration_ms == 86400000


def test_the_shipped_file_says_what_holds_without_it() -> None:
    shipped = load_config(str(SHIPPED))
    for topic in ("orders", "__consumer_offsets", "__transaction_state"):
        assert shipped.topic(topic) == load_config().topic(topic)
    assert shipped.producer_id_expiration_ms == load_config().producer_id_expiration_ms
    assert (shipped.include, shipped.exclude) == (None, None)
    assert shipped.assume_fully_replicated is False


def test_the_shipped_file_tells_of_every_setting_with_default_and_limits() -> None:
    text = SHIPPED.read_text()
    cleaning = {name: each for name, each in SETTINGS.items() if each.effect is Effect.CLEANING}
    settings = {**cleaning, **BROKER_SETTINGS}
    for name, setting in settings.items():
        about = re.search(
            rf"^# {re.escape(name)}\b[^\n]*:((.|\n)*?)^(# )?{name} = (.*)$", text, re.M
        )
        assert about is not None, name
        if setting.default is None:
            assert about[3] is not None, f"{name} is not set by default"
        else:
            assert about[4] == str(setting.default), name
        if setting.least is not None:
            assert f"from {setting.least} " in about[1], name
    defaults = tomllib.loads(text)["defaults"]
    assert sum(isinstance(value, dict) for value in defaults.values()) == len(defaults)


def test_the_later_layer_wins(tmp_path: Path) -> None:
    toml = write(
        tmp_path / "compactor.toml",
        """
        [defaults]
        cleanup.policy = "compact"
        segment.bytes = 1
        delete.retention.ms = 1
        index.interval.bytes = 1
        segment.index.bytes = 4
        retention.bytes = 1
        [[topics]]
        match = "orders.*"
        segment.bytes = 2
        delete.retention.ms = 2
        index.interval.bytes = 2
        segment.index.bytes = 5
        [[topics]]
        match = "orders-eu"
        delete.retention.ms = 3
        index.interval.bytes = 3
        segment.index.bytes = 6
        """,
    )
    values = {"orders-eu": {"index.interval.bytes": "4", "segment.index.bytes": "7"}}
    topics = write(tmp_path / "topics.json", json.dumps(values))
    config = load_config(toml, topics, {"segment.index.bytes": "8"}).topic("orders-eu")
    assert (config.retention_bytes, config.segment_bytes) == (1, 2)
    assert (config.delete_retention_ms, config.index_interval_bytes) == (3, 4)
    assert config.segment_index_bytes == 8


def test_a_pattern_matches_whole_names() -> None:
    config = parse_toml('[[topics]]\nmatch = "orders"\ncleanup.policy = "compact"', "c.toml")
    assert config.topic("orders").is_compacted
    assert config.topic("orders-eu").cleanup_policy is None
    assert config.topic("my-orders").cleanup_policy is None


def test_what_set_the_policy_is_known(tmp_path: Path) -> None:
    toml = write(tmp_path / "c.toml", '[[topics]]\nmatch = "o.*"\ncleanup.policy = "delete"')
    topics = write(tmp_path / "t.json", '{"p": {"cleanup.policy": "compact"}}')
    config = load_config(toml, topics)
    assert config.topic("orders").policy_source == f"[[topics]] 'o.*' of {toml}"
    assert config.topic("p").policy_source == "--topic-configs"
    assert config.topic("__consumer_offsets").policy_source == "Kafka's own for this topic"
    overridden = load_config(toml, topics, {"cleanup.policy": "delete"})
    assert overridden.topic("orders").policy_source == "--set"


@pytest.mark.parametrize("policy", ["delete", "", "compact", "compact,delete"])
def test_the_policy_of_a_topics_own_entry_stands(tmp_path: Path, policy: str) -> None:
    """Neither --set nor the file makes a topic compacted that is not so by its own word."""
    text = '[defaults]\ncleanup.policy = "compact"\n[[topics]]\nmatch = ".*"\n'
    toml = write(tmp_path / "c.toml", text + 'cleanup.policy = "compact,delete"')
    topics = write(tmp_path / "t.json", json.dumps({"p": {"cleanup.policy": policy}}))
    settings = {"cleanup.policy": "compact", "segment.bytes": "7"}
    config = load_config(toml, topics, settings).topic("p")
    assert config.cleanup_policy == tuple(word for word in policy.split(",") if word)
    assert (config.policy_source, config.segment_bytes) == ("--topic-configs", 7)
    assert load_config(toml, topics, settings).topic("q").cleanup_policy == ("compact",)


def test_the_brokers_own_topics_keep_theirs_against_defaults_but_not_against_a_pattern() -> None:
    config = parse_toml('[defaults]\ncleanup.policy = "delete"', "c.toml")
    assert config.topic("__consumer_offsets").cleanup_policy == ("compact",)
    config = parse_toml('[[topics]]\nmatch = "__.*"\ncleanup.policy = "delete"', "c.toml")
    assert config.topic("__consumer_offsets").cleanup_policy == ("delete",)


def test_names_may_be_quoted_or_not() -> None:
    for line in (
        "segment.index.bytes = 8",
        '"segment.index.bytes" = 8',
        "segment.index.bytes = '8'",
    ):
        assert parse_toml(f"[defaults]\n{line}", "c.toml").topic("t").segment_index_bytes == 8


def test_settings_of_the_broker(tmp_path: Path) -> None:
    toml = write(tmp_path / "c.toml", "[broker]\nproducer.id.expiration.ms = 5")
    assert load_config(toml).producer_id_expiration_ms == 5
    config = load_config(toml, settings={"producer.id.expiration.ms": "6"})
    assert config.producer_id_expiration_ms == 6
    assert config.overrides == {}


def test_settings_of_the_round() -> None:
    text = '[round]\ninclude = "a.*"\nexclude = "ab"\nassume_fully_replicated = true'
    config = parse_toml(text, "c.toml")
    assert config.assume_fully_replicated
    assert config.include is not None and config.include.pattern == "a.*"
    config = with_filters(config, None, "x|y")
    assert config.include is not None and config.include.pattern == "a.*"
    assert config.exclude is not None and config.exclude.pattern == "x|y"
    with pytest.raises(ConfigError, match=r"^include: '\(' is not a regular expression"):
        with_filters(Config(), "(", None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[default]", "c.toml: no table is named 'default', only defaults, topics, broker, round"),
        ("[defaults]\nx = 1", "[defaults] of c.toml: no topic configuration is named 'x'"),
        ("[defaults]\nsegment.bytes = -1", "[defaults] of c.toml: segment.bytes = -1: expected"),
        ("[defaults]\nsegment = 5", "[defaults] of c.toml: no topic configuration is named 'segm"),
        ("defaults = 1", "c.toml: defaults is not a table: write [defaults]"),
        ("topics = 1", "c.toml: topics is not a list of tables: write [[topics]]"),
        ("[topics]", "c.toml: topics is not a list of tables: write [[topics]]"),
        ("[[topics]]\nsegment.bytes = 1", "c.toml: [[topics]] without match"),
        ("[[topics]]\nmatch = '['", "[[topics]] '[' of c.toml: '[' is not a regular expression"),
        ("[[topics]]\nmatch = 'a'\nb = 1", "[[topics]] 'a' of c.toml: no topic configuration is"),
        ("[broker]\nx = 1", "[broker] of c.toml: no setting is named 'x', only producer.id.exp"),
        ("[broker]\nsegment.bytes = 1", "'segment.bytes'; it is a topic configuration: put it"),
        ("[broker]\nproducer.id.expiration.ms = 0", "[broker] of c.toml: producer.id.expiration"),
        ("[round]\ninclude = 1", "[round] of c.toml: include = 1: expected a regular expression"),
        ("[round]\nexclude = '*'", "[round] of c.toml: exclude: '*' is not a regular expression"),
        ("[round]\nassume_fully_replicated = 1", "assume_fully_replicated = 1: expected true or"),
        ("[defaults", "c.toml: not TOML: "),
        ("[defaults]\nsegment.ms = 1\nsegment.ms = 2", "c.toml: not TOML: "),
    ],
)
def test_what_the_file_cannot_say_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_toml(text, "c.toml")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "t.json: neither JSON nor what"),
        ("{", "t.json: neither JSON nor what"),
        ("[]", "t.json: expected an object of topics, found []"),
        ('{"t": 5}', "t.json: topic t: expected an object, found 5"),
        ('{"t": {"x": 1}}', "t.json: topic t: no topic configuration is named 'x'"),
        ('{"t": {"segment.bytes": "0"}}', "t.json: topic t: segment.bytes = '0': expected"),
        ('{"t": {}, "t": {}}', "t.json: 't' is given twice"),
        ('{"t": {"segment.ms": 1, "segment.ms": 2}}', "t.json: 'segment.ms' is given twice"),
    ],
)
def test_what_topic_configs_cannot_say_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_topic_configs(text, "t.json")
    assert problem in str(caught.value)


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-file: No such file or directory"):
        load_config(str(tmp_path / "no-such-file"))
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(None, str(tmp_path))
    (tmp_path / "latin.toml").write_bytes(b"# gr\xfc\xdfe")
    with pytest.raises(ConfigError, match=r"latin\.toml, byte 4: not UTF-8"):
        load_config(str(tmp_path / "latin.toml"))


def test_what_cannot_go_together_is_found_at_once(tmp_path: Path) -> None:
    """C-20.3, across layers: neither value is wrong by itself."""
    toml = write(tmp_path / "c.toml", "[defaults]\nmax.compaction.lag.ms = 10")
    topics = write(tmp_path / "t.json", '{"t": {"min.compaction.lag.ms": "11"}}')
    with pytest.raises(ConfigError, match=r"^topic t: min\.compaction\.lag\.ms 11 is above"):
        load_config(toml, topics)
    alone = write(
        tmp_path / "d.toml", "[defaults]\nmin.compaction.lag.ms = 2\nmax.compaction.lag.ms = 1"
    )
    with pytest.raises(
        ConfigError, match=r"^\[defaults\] of .*min\.compaction\.lag\.ms 2 is above"
    ):
        load_config(alone)
    with pytest.raises(ConfigError, match=r"settings: no topic configuration is named 'max\.lag'"):
        load_config(settings={"max.lag": "1"})


ALL = """All configs for topic orders are:
  cleanup.policy=compact,delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=a,b}
  compression.gzip.level=-1 sensitive=false synonyms={DEFAULT_CONFIG:compression.gzip.level=-1}
  follower.replication.throttled.replicas= sensitive=false synonyms={}
  name.of.a.later.kafka=5 sensitive=false synonyms={}
  segment.bytes=1048576 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=1048576}
All configs for topic other are:
  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}
"""
ORDERS = {
    "cleanup.policy": ("compact", "delete"),
    "compression.gzip.level": "-1",
    "segment.bytes": 1048576,
}
TOPICS = (
    "Topic: orders\tTopicId: Zqr9Mn1bQ1eV0gX3m1y2pw\tPartitionCount: 1\tReplicationFactor: 1\t"
    "Configs: cleanup.policy=compact,delete,segment.bytes=1048576\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    "Topic: other\tTopicId: yyr9Mn1bQ1eV0gX3m1y2pw\tPartitionCount: 1\tReplicationFactor: 1\t"
    "Configs: \n"
)


def test_what_kafka_configs_prints() -> None:
    other = {"cleanup.policy": ("delete",)}
    assert parse_topic_configs(ALL, "t") == {"orders": ORDERS, "other": other}


def test_what_kafka_configs_prints_of_own_settings_alone() -> None:
    text = "Dynamic configs for topic orders are:\nDynamic configs for topic other are:\n" + (
        "  retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1}\n"
    )
    assert parse_topic_configs(text, "t") == {"orders": {}, "other": {"retention.ms": -1}}


def test_what_kafka_topics_prints() -> None:
    orders = {"cleanup.policy": ("compact", "delete"), "segment.bytes": 1048576}
    assert parse_topic_configs(TOPICS, "t") == {"orders": orders, "other": {}}


def test_a_value_that_kafka_would_not_take_is_named() -> None:
    text = ALL.replace("segment.bytes=1048576 ", "segment.bytes=much ")
    with pytest.raises(ConfigError, match=r"t: topic orders: segment.bytes = 'much'"):
        parse_topic_configs(text, "t")


@pytest.mark.parametrize(
    ("text", "line"),
    [(ALL[: ALL.index("1048576 ")] + "\n", 6), (ALL[: ALL.index("=1048576 ")] + "\n" + ALL, 6)]
    + [(text[:end], text[:end].count("\n") + 1) for text, end in ((ALL, -1), (ALL, 140))]
    + [(TOPICS[: TOPICS.index("48576")], 1), (TOPICS[: TOPICS.index(",segment.bytes")], 1)],
)
def test_a_text_that_is_cut_short_is_refused(text: str, line: int) -> None:
    """What is lost may be a lag or a retention, and half of a number is another number."""
    with pytest.raises(ConfigError, match=rf"^t: .*line {line}\b"):
        parse_topic_configs(text, "t")
