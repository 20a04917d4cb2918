"""The commands of remedies, for one log: with its directory, its broker and its producers."""

import os
import pwd
import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from compactor.host.shell_commands import (
    as_user,
    compactor,
    kafka,
    owner_of,
    tool,
    valued,
)
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import meta_properties


class OpenSince(NamedTuple):
    """A transaction that is open in a log."""

    producer_id: int
    first_offset: int


class LogPlace(NamedTuple):
    """Which log a remedy is for, and what is known of it."""

    log_dir: str
    topic: str
    partition: int
    others: tuple[str, ...] = ()  # log directories that hold a log of the same name
    open_since: tuple[OpenSince, ...] = ()  # empty where nobody has looked

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


Commands = Callable[[LogPlace], tuple[str, ...]]


def none(_: LogPlace) -> tuple[str, ...]:
    return ()


def all_of(*parts: Commands) -> Commands:
    """One after the other."""
    return lambda log: tuple(command for part in parts for command in part(log))


def of_log(command: str, *options: str) -> Commands:
    """A command about this one log."""
    return lambda log: (compactor(command, log.log_dir, log.name, options=options),)


def of_each_directory(command: str) -> Commands:
    """Likewise, for each directory that has a log of this name."""
    return lambda log: tuple(
        compactor(command, log_dir, log.name) for log_dir in (log.log_dir, *log.others)
    )


def recovered(log: LogPlace) -> tuple[str, ...]:
    return (compactor("recover", log.log_dir),)


def run_at_any_ratio(log: LogPlace) -> tuple[str, ...]:
    """A run of this topic alone, which does not wait until enough of it is dirty."""
    options = ("--include", re.escape(log.topic), "--set", "min.cleanable.dirty.ratio=0")
    return (compactor("run", log.log_dir, options=options),)


def altered(setting: str) -> Commands:
    """Give the topic another setting."""
    return lambda log: (kafka("configs", "--alter", *_topic(log), "--add-config", setting),)


def described(log: LogPlace) -> tuple[str, ...]:
    return (kafka("configs", *_topic(log), "--describe"),)


def settings_of_all(_: LogPlace) -> tuple[str, ...]:
    return (all_described(),)


def under_replicated(_: LogPlace) -> tuple[str, ...]:
    return (kafka("topics", "--describe", "--under-replicated-partitions"),)


def reassignment(_: LogPlace) -> tuple[str, ...]:
    return (kafka("reassign-partitions", "--reassignment-json-file", "FILE", "--verify"),)


def clock(_: LogPlace) -> tuple[str, ...]:
    return (tool("timedatectl"),)


def of_open_transactions(log: LogPlace) -> tuple[str, ...]:
    """While the broker runs, and for a log whose broker stays stopped."""
    partition = (*valued("--topic", log.topic), "--partition", str(log.partition))
    found = kafka("transactions", "find-hanging", "--broker-id", _broker_id(log), *partition)
    if not log.open_since:
        return found, compactor("explain", log.log_dir, log.name)
    at_broker, alone = [], []
    for producer_id, first in log.open_since:
        start = ("--start-offset", str(first))
        at_broker.append(kafka("transactions", "abort", *partition, *start))
        options = ("--producer-id", str(producer_id), "--only-replica")
        alone.append(compactor("log abort", log.log_dir, log.name, options=options))
    return found, *at_broker, *alone


def given_to_owner(log: LogPlace) -> tuple[str, ...]:
    return (owner_of(log.log_dir, os.path.join(log.log_dir, log.name), "-R"),)


def as_owner(log: LogPlace) -> tuple[str, ...]:
    """The command that says more, by whoever owns the directory; none where that is us."""
    try:
        owner = os.stat(log.log_dir)
    except OSError:
        return ()
    if owner.st_uid == os.geteuid():
        return ()
    return (typed_by(owner, "verify", log.log_dir, log.name),)


def typed_by(owner: os.stat_result, command: str, *operands: str) -> str:
    """A command of this program as the owner of a file would type it."""
    name = None
    with suppress(KeyError):
        name = pwd.getpwuid(owner.st_uid).pw_name
    return as_user(name, owner.st_uid, owner.st_gid, command, *operands)


def all_described() -> str:
    """The command whose output `--topic-configs` takes."""
    words = ("--entity-type", "topics", "--describe", "--all")
    return kafka("configs", *words, into="configs.txt")


def _topic(log: LogPlace) -> tuple[str, ...]:
    return "--entity-type", "topics", *valued("--entity-name", log.topic)


def _broker_id(log: LogPlace) -> str:
    with suppress(OSError, CorruptFileError):
        return str(meta_properties.read(log.log_dir, LOCAL).node_id)
    return "ID"
