"""Damaged log directories under a real broker's start, held against what is said of them here.

1. A broker with many log directories, a log in each, is written to and stopped: the original.
2. Each case damages one directory of a copy. What we say of it is asked for.
3. Cases of which we say that the broker ends are started one by one; the others many at a time,
   each in a log directory of its own, and one by one where the broker ends all the same.
4. What the broker did with each directory is seen from outside: whether the broker runs, what its
   log says of the directory, names that end in -stray, and what readers find from every offset.
"""

import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from compactor import api
from compactor.api import StartOutcome
from compactor.views.next_steps import next_steps
from tests.broker import clients, start_damages
from tests.broker.broker import Broker, BrokerError
from tests.broker.start_damages import Place
from tests.broker.workload import SEGMENT_BYTES
from tests.support.local_command import run_command

DIRECTORIES = 13  # beside the first one, which has the metadata log and is never damaged
FIRST = "data"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "300",
}
SETTLED_SECONDS = 2  # the cleaner reads its checkpoints, and failed directories are let go of
PATIENCE_SECONDS = 8
FINE = "fine"
_WELL = (FINE, StartOutcome.LOG_SET_ASIDE)  # a start may be recommended
_ALONE = (StartOutcome.BROKER_ENDS, StartOutcome.LOGS_NOT_SERVED, StartOutcome.CLEANER_ENDS)
_OFFLINE = re.compile(
    r"Stopping serving logs in dir (\S+)|Error while reading meta.properties file (\S+)/meta"
)
_CLEANER_ENDED = re.compile(r"kafka-log-cleaner-thread-\d+\]: Error due to")

Records = tuple[tuple[int, bytes | None, bytes | None], ...]


class Case(NamedTuple):
    """Damages to one log directory."""

    number: int
    seed: int
    damages: tuple[str, ...]


class Verdict(NamedTuple):
    """A case, what we say of it, and what a broker made of it."""

    case: Case
    said: str
    seen: str
    advised: str | None  # a command that recommends the start all the same

    def __str__(self) -> str:
        advised = f"; RECOMMENDED BY {self.advised}" if self.advised else ""
        what = ", ".join(self.case.damages)
        return f"case {self.case.number}: {what}: we say {self.said}, seen {self.seen}{advised}"

    @property
    def is_right(self) -> bool:
        """Two outcomes hang on more than the files, and then the worse one is said.

        Where a broker reports a new directory id in time, the controller lets it lead. A copy on
        its way that lacks nothing takes the place of a log at once, whatever is wrong with that:
        one that lacks records gets them from there, without those that a reader misses.
        """
        is_race = self.said == StartOutcome.LOGS_NOT_SERVED
        is_replaced = self.said == StartOutcome.LOADED_WITH_LOSS and any(
            "on its way" in damage for damage in self.case.damages
        )
        is_luck = self.seen == FINE and (is_race or is_replaced)
        return (self.said == self.seen or is_luck) and self.advised is None


@dataclass(slots=True)
class Original:
    """The home of a stopped broker, and what readers found there."""

    home: Path
    records: dict[str, Records] = field(default_factory=dict)  # by topic

    @property
    def names(self) -> list[str]:
        return [f"d{number:02}" for number in range(DIRECTORIES)]

    @property
    def settings(self) -> dict[str, str]:
        return SETTINGS | {"log.dirs": ",".join([FIRST, *self.names])}

    def topic_in(self, name: str) -> str:
        (found,) = (p.name for p in (self.home / name).iterdir() if re.match(r"t\d\d-0$", p.name))
        return found.removesuffix("-0")


def original(home: Path) -> Original:
    """Write to a new broker, and stop it."""
    home.mkdir(parents=True)
    made = Original(home)
    with Broker(home) as broker:
        broker.start(made.settings)
        # the cleaner runs, and finds no log dirty enough
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
        config[SEGMENT_BYTES] = "8192"
        topics = [f"t{number:02}" for number in range(DIRECTORIES + 1)]
        for topic in topics:  # one after the other: each goes where the fewest logs are
            clients.create(broker.bootstrap, NewTopic(topic, 1, 1, config=config))
        _write(broker, topics, 120)
        broker.stop()
        broker.start(made.settings)  # a second leader epoch
        _write(broker, topics, 30)
        made.records = {topic: read(broker.bootstrap, topic) for topic in topics}
        broker.stop()
    return made


def _write(broker: Broker, topics: Iterable[str], count: int) -> None:
    for topic in topics:
        records = [(b"k%d" % (number % 17), b"v%d" % number * 40) for number in range(count)]
        clients.write(broker.bootstrap, topic, records, 10, enable_idempotence="true")


def read(bootstrap: str, topic: str, start: int | None = None, most: int = 10**6) -> Records:
    """What a reader finds from an offset on; KafkaException where nobody leads the partition."""
    reader = clients.consumer(bootstrap, "looking")
    place = TopicPartition(topic, 0)
    found: list[tuple[int, bytes | None, bytes | None]] = []
    try:
        low, end = _patiently(lambda: reader.get_watermark_offsets(place, timeout=3))
        place.offset = low if start is None else start
        reader.assign([place])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and len(found) < most:
            if reader.position([place])[0].offset >= end or place.offset >= end:
                break
            for message in reader.consume(most, 0.3):
                if message.error():
                    raise KafkaException(message.error())
                found.append((message.offset() or 0, message.key(), message.value()))
    finally:
        reader.close()
    return tuple(found[:most])


def _patiently(ask: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def drawn(count: int, seed: int) -> list[Case]:
    rng = random.Random(seed)
    return [
        Case(number, rng.getrandbits(32), tuple(start_damages.draw(rng))) for number in range(count)
    ]


class Campaign:
    """Cases on copies of one original."""

    def __init__(self, source: Original, scratch: Path, say: Callable[[str], None]) -> None:
        self._source, self._scratch, self._say = source, scratch, say
        scratch.mkdir(parents=True, exist_ok=True)
        self.starts = 0

    def run(self, cases: Sequence[Case]) -> list[Verdict]:
        """What was said and seen of each."""
        said = {case: self._said(case) for case in cases}
        verdicts = []
        together = [case for case in cases if not said[case][2] and _stays_apart(case)]
        for at in range(0, len(together), DIRECTORIES):
            batch = together[at : at + DIRECTORIES]
            seen = self._seen(dict(zip(self._source.names, batch, strict=False)))
            if seen is None:  # somebody's fault: each alone
                seen = {case: self._alone(case) for case in batch}
            verdicts += [Verdict(case, said[case][0], seen[case], None) for case in batch]
            self._say(f"{len(verdicts)} of {len(cases)}")
        for case in cases:
            if case not in together:
                verdicts.append(Verdict(case, said[case][0], self._alone(case), None))
                self._say(str(len(verdicts)))
        return [
            verdict._replace(advised=None if verdict.seen in _WELL else said[verdict.case][1])
            for verdict in sorted(verdicts, key=lambda verdict: verdict.case.number)
        ]

    def _alone(self, case: Case) -> str:
        seen = self._seen({self._source.names[0]: case})
        return StartOutcome.BROKER_ENDS if seen is None else seen[case]

    def _said(self, case: Case) -> tuple[str, str | None, bool]:
        """The worst that we say of it, the first command that recommends a start, and whether
        other directories would notice."""
        home = self._copy({self._source.names[0]: case})
        try:
            log_dirs = [str(home / name) for name in (FIRST, *self._source.names)]
            problems = api.start_problems(log_dirs)
            if not problems:
                return FINE, None, False  # a start may be recommended, if that is so
            topic = self._source.topic_in(self._source.names[0])
            advising = _advising(log_dirs, topic, all_commands=case.number % 4 == 0)
            is_felt = any(problem.outcome in _ALONE for problem in problems)
            return problems[0].outcome.value, advising, is_felt
        finally:
            shutil.rmtree(home)

    def _copy(self, cases: dict[str, Case]) -> Path:
        home = self._scratch / "home"
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run(["cp", "-a", "--sparse=always", self._source.home, home], check=True)
        names = self._source.names
        for name, case in cases.items():
            topic = self._source.topic_in(name)
            other = home / names[(names.index(name) + 1) % len(names)]
            place = Place(home / name, home / name / f"{topic}-0", other, random.Random(case.seed))
            for damage in case.damages:
                start_damages.of(damage)(place)
        return home

    def _seen(self, cases: dict[str, Case]) -> dict[Case, str] | None:
        """What a start makes of each; None where the broker ends."""
        home = self._copy(cases)
        before, broker = self._strays(home), Broker(home)
        self.starts += 1
        try:
            broker.start(self._source.settings)
            time.sleep(SETTLED_SECONDS)
            if broker.has_ended():
                return None
            strays = self._strays(home) - before
            return {case: self._outcome(broker, name, strays) for name, case in cases.items()}
        except BrokerError:
            return None
        finally:
            broker.kill()
            shutil.rmtree(home)

    def _outcome(self, broker: Broker, name: str, strays: set[tuple[str, str]]) -> str:
        """strays: those that the start has made, each with the name of its log directory."""
        said, log_dir = "\n".join(broker.said()), broker.home / name
        if any(str(log_dir) in found for found in _OFFLINE.findall(said)):
            return StartOutcome.DIRECTORY_OFFLINE
        topic = self._source.topic_in(name)
        before = self._source.records[topic]
        try:
            after = read(broker.bootstrap, topic)
            from_there = all(
                read(broker.bootstrap, topic, before[at][0], 1)[:1] == before[at : at + 1]
                for at in range(0, len(before), max(1, len(before) // 7))
                if after
            )
        except KafkaException:
            return StartOutcome.LOGS_NOT_SERVED
        # of this directory, or of its topic
        stray = any(each[0] == name or each[1].startswith(f"{topic}-") for each in strays)
        if stray and not after:
            return StartOutcome.LOG_EMPTIED
        if after != before or not from_there:
            return StartOutcome.LOADED_WITH_LOSS
        if _CLEANER_ENDED.search(said):
            return StartOutcome.CLEANER_ENDS
        return StartOutcome.LOG_SET_ASIDE if stray else FINE

    def _strays(self, home: Path) -> set[tuple[str, str]]:
        """Logs that are set aside, each with the name of its log directory."""
        return {
            (name, path.name)
            for name in self._source.names
            for path in (home / name).glob("*-stray")
        }


def _advising(log_dirs: Sequence[str], topic: str, all_commands: bool) -> str | None:
    """The first command that recommends to start a broker there; None where none does.

    all_commands: those that take long, too.
    """
    with_policy = ("--any-clock", "--include", topic, "--set", "cleanup.policy=compact")
    commands = (
        ("verify", log_dirs[1]),
        *((("doctor", *log_dirs),) if all_commands else ()),
        ("plan", *log_dirs, *with_policy),
        ("explain", *log_dirs, f"{topic}-0", *with_policy[:1]),
        ("recover", *log_dirs),
    )
    for words in commands:
        ended = run_command(*words)
        shown = " ".join((ended.out + ended.error).split())
        if "tart the broker" in shown and "Start no broker here before" not in shown:
            return str(words[0])
    if not all_commands:
        return None
    settings = {"min.cleanable.dirty.ratio": "0", "cleanup.policy": "compact"}
    rules = api.Rules(include=topic, any_clock=True, settings=settings)
    try:
        report = api.run(log_dirs, rules, api.RunOptions(in_process=True, recover_first=True))
    except api.LogCompactionError:
        return None
    return "run" if "tart the broker" in " ".join(next_steps(report)) else None


def _stays_apart(case: Case) -> bool:
    """Whether it damages nothing but its own directory."""
    return not any("another" in damage or "on its way" in damage for damage in case.damages)
