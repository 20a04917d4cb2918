"""Filters and settings of topics that are not there are told, with what was probably meant."""

import time
from collections.abc import Sequence

import pytest

from compactor.errors import ConfigError
from compactor.planning.unknown_topics import require_include, unknown_topic_warnings
from compactor.settings.config import Config, parse_toml, parse_topic_configs, with_filters

TOPICS = ("customers", "orders", "orders-eu", "prices", "__consumer_offsets")


@pytest.mark.parametrize(
    ("include", "hint"),
    [
        ("order", ": it has to match the whole name, and matches only a part of orders, orders-eu"),
        ("e", " a part of __consumer_offsets, customers, orders and 2 more"),
        ("cust*", " a part of customers"),
        ("ordres", "; did you mean orders, orders-eu?"),
        ("prices-0", "; did you mean prices?"),
        ("Orders", "; did you mean orders, orders-eu?"),
        ("zzz", "; there are __consumer_offsets, customers, orders and 2 more"),
    ],
)
def test_nothing_to_include_is_an_error_with_a_suggestion(include: str, hint: str) -> None:
    config = with_filters(Config(), include, None)
    with pytest.raises(ConfigError) as raised:
        require_include(config, TOPICS)
    assert str(raised.value).startswith(f"include {include!r}: matches no topic here")
    assert str(raised.value).endswith(hint)


def test_the_message_says_where_the_filter_stands() -> None:
    config = parse_toml('[round]\ninclude = "x"\nexclude = "y"', "c.toml")
    with pytest.raises(ConfigError, match=r"^\[round\] of c\.toml: include 'x': matches no topic"):
        require_include(config, ["z"])
    (warning,) = unknown_topic_warnings(config, ["z"])
    assert warning.startswith("[round] of c.toml: exclude 'y': matches no topic here")
    (warning,) = unknown_topic_warnings(with_filters(config, "z", "w"), ["z"])
    assert warning.startswith("--exclude 'w': ")


def test_a_topic_that_is_only_being_moved_here_is_named_as_such() -> None:
    """The directory that it is moved from was not given."""
    config = with_filters(Config(), "prices|orders", None)
    with pytest.raises(ConfigError) as raised:
        require_include(config, ["customers"], ["orders", "others"])
    assert str(raised.value) == (
        "include 'prices|orders': matches no topic here: of orders there is only what a broker "
        "has begun to move here (-future)"
    )
    require_include(config, ["orders"], ["orders"])


def test_a_directory_without_topics_has_none_to_include() -> None:
    with pytest.raises(ConfigError, match="matches no topic here: there are no topics"):
        require_include(with_filters(Config(), ".*", None), [])


@pytest.mark.parametrize(
    ("include", "exclude", "told"),
    [
        ("orders", "o.*", "--exclude 'o.*': leaves no topic of --include here"),
        (None, ".*", "--exclude '.*': leaves no topic here"),
    ],
)
def test_filters_that_leave_nothing_are_warned_of(
    include: str | None, exclude: str, told: str
) -> None:
    assert list(unknown_topic_warnings(with_filters(Config(), include, exclude), TOPICS)) == [told]


@pytest.mark.parametrize(
    ("include", "exclude"), [(None, None), ("orders.*", "orders"), (".*", "prices")]
)
def test_what_matches_is_no_news(include: str | None, exclude: str | None) -> None:
    config = with_filters(Config(), include, exclude)
    require_include(config, TOPICS)
    assert list(unknown_topic_warnings(config, TOPICS)) == []


def test_patterns_and_topics_that_are_not_there_are_warned_of() -> None:
    text = '[[topics]]\nmatch = "order.*"\n[[topics]]\nmatch = "custmers"\n"segment.bytes" = 7'
    topics = parse_topic_configs('{"orders": {}, "prizes": {}, "elsewhere": {}}', "t.json")
    config = Config(patterns=parse_toml(text, "c.toml").patterns, topics=topics)
    assert list(unknown_topic_warnings(config, TOPICS)) == [
        "[[topics]] 'custmers' of c.toml: matches no topic here; did you mean customers?",
        "--topic-configs: 2 of its 3 topics not here: prizes (did you mean prices?), elsewhere",
    ]


def test_unmatched_settings_of_a_large_cluster_take_one_line_and_little_time() -> None:
    here = [f"here-{number}" for number in range(5_000)]
    topics: dict[str, dict[str, int | float | str | bool | tuple[str, ...]]]
    topics = {f"far-off-{number:05}": {} for number in range(20_000)}
    began = time.process_time()
    (warning,) = told(Config(topics=topics), here)
    assert warning.endswith(": far-off-00000, far-off-00001, far-off-00002 and 19,997 more")
    assert time.process_time() - began < 5


def told(config: Config, topics: Sequence[str]) -> list[str]:
    return list(unknown_topic_warnings(config, topics))
