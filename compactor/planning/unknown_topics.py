"""Warn of topics that do not exist: filters and settings without an effect. Pure.

Nothing is wrong with each by itself, and nobody would miss a mistyped one.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from compactor.errors import ConfigError
from compactor.host.printable import counted
from compactor.settings.config import Config
from compactor.settings.rules import option_names

SHOWN_TOPICS = 3
PAIRS = 20_000  # of names, to be checked against each other: a tenth of a second
_SYNTAX = re.compile(r"[\\^$.*+?()\[\]{}|]")


def require_include(
    config: Config, topics: Collection[str], moving_in: Collection[str] = ()
) -> None:
    """Raise ConfigError where the topics to include are none of these: nothing would be done.

    moving_in: topics with the copy of a move (`-future`) in these log directories.
    """
    include = config.include
    if include is not None and not any(map(include.fullmatch, topics)):
        moving = sorted(filter(include.fullmatch, moving_in))
        hint = (
            f": of {_some(moving)} there is only what a broker has begun to move here (-future)"
            if moving
            else _hint(include, topics)
        )
        raise ConfigError(
            f"matches no topic here{hint}", config.include_place, repr(include.pattern)
        )


def _option(place: str) -> str:
    """Return what a warning calls the place of a filter: an option, or a place in a file."""
    return option_names().get(place, place)


def unknown_topic_warnings(config: Config, topics: Collection[str]) -> Iterator[str]:
    """Yield a warning, without a full stop, for each other thing that names no topic of these."""
    exclude = config.exclude
    filters = (
        []
        if exclude is None
        else [(f"{_option(config.exclude_place)} {exclude.pattern!r}", exclude)]
    )
    filters += [(pattern.place, pattern.match) for pattern in config.patterns]
    for place, match in filters:
        if not any(map(match.fullmatch, topics)):
            yield f"{place}: matches no topic here{_hint(match, topics)}"
    included = list(filter(config.include.fullmatch, topics)) if config.include else topics
    if exclude is not None and included and all(map(exclude.fullmatch, included)):
        of_included = "" if config.include is None else f" of {_option(config.include_place)}"
        place = _option(config.exclude_place)
        yield f"{place} {exclude.pattern!r}: leaves no topic{of_included} here"
    absent = sorted(config.topics.keys() - topics)
    if absent:
        count = f"{len(absent):,} of its {len(config.topics):,} topics"
        yield f"--topic-configs: {count} not here: {_names(absent, topics)}"


def disagreement_warnings(configs: Sequence[Config], topics: Collection[str]) -> Iterator[str]:
    """Yield a warning where --topic-configs and the metadata log differ in what removes no topic.

    A policy that differs sets the logs of its topic aside, see `Config.policy_disagreement`.
    configs: one for each broker.
    """
    named = sorted(topic for topic in configs[0].topics if topic in topics)
    found = [text for config in configs for topic in named for text in _others(config, topic)]
    found = list(dict.fromkeys(found))  # brokers of one cluster say the same
    if found:
        yield (
            f"--topic-configs differs in {counted(len(found), 'setting')} from the topics' own "
            f"entries in the metadata log, and the file decides: {_some(found)}"
        )
    alone = [t for t in named if any(_is_by_file_alone(config, t) for config in configs)]
    if alone:
        yield (
            f"--topic-configs compacts {counted(len(alone), 'topic')} without a cleanup.policy of "
            f"{'its' if len(alone) == 1 else 'their'} own in the metadata log, where that is "
            f"delete: {_some(alone)}. If an entry was removed since, correct the file; if not: "
            "--trust-topic-configs TOPIC"
        )
    unknown = sorted(set(configs[0].rules.trust_topic_configs) - configs[0].topics.keys())
    if unknown:
        yield f"--trust-topic-configs: --topic-configs does not have {_some(unknown)}"


def _others(config: Config, topic: str) -> Iterator[str]:
    return config.other_disagreements(topic) if config.is_wanted(topic) else iter(())


def _is_by_file_alone(config: Config, topic: str) -> bool:
    """A policy of the topic itself that differs sets its logs aside instead."""
    disagrees = config.policy_disagreement(topic) is not None
    return config.is_wanted(topic) and not disagrees and config.is_compacted_by_file_alone(topic)


def _hint(match: re.Pattern[str], topics: Collection[str]) -> str:
    """What may have been meant."""
    if not topics:
        return ": there are no topics"
    within = sorted(filter(match.search, topics))
    if within:
        return f": it has to match the whole name, and matches only a part of {_some(within)}"
    close = get_close_matches(_SYNTAX.sub("", match.pattern), topics, SHOWN_TOPICS)
    return f"; did you mean {_some(close)}?" if close else f"; there are {_some(sorted(topics))}"


def _names(absent: list[str], topics: Collection[str]) -> str:
    """The first few names; those that look like an existing topic come first."""
    looked_at = absent[: max(SHOWN_TOPICS, PAIRS // max(1, len(topics)))]
    close = {name: get_close_matches(name, topics, 1, 0.8) for name in looked_at}
    shown = [
        f"{name} (did you mean {close[name][0]}?)" if close[name] else name
        for name in sorted(looked_at, key=lambda name: not close[name])
    ]
    return _more(shown[:SHOWN_TOPICS], len(absent))


def _some(topics: list[str]) -> str:
    return _more(topics[:SHOWN_TOPICS], len(topics))


def _more(shown: list[str], count: int) -> str:
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    return ", ".join(shown) + more
