"""What may be seen of one log: the truth, and what is known of log starts and tombstones.

Modelled are the records of a log, their transactions and fates, its epochs, high watermark, log
start, topic id and directory, when a tombstone may have gone, and what an undoing may take back.
Not modelled is when cleaners and retention have to do something: they may always do less. Nor are
power cuts, several replicas, messages of format v0 and v1, or records without a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.histories.truth import LogTruth

FOREVER = 1 << 62


class KeptRun(NamedTuple):
    """What is known of a run of ours that kept its originals."""

    path: str
    life: int  # in which the log was then
    start_before: int  # or where it may have been, after an undoing that no broker has seen
    peak_before: int


@dataclass
class Tombstone:
    """When a tombstone may go: a cleaning gives it a horizon, a later one may find that reached."""

    horizon_ms: int = FOREVER
    may_be_gone: bool = False

    def cleaned(self, now_ms: int, delete_retention_ms: int) -> None:
        self.may_be_gone |= now_ms >= self.horizon_ms
        self.horizon_ms = min(self.horizon_ms, now_ms + delete_retention_ms)


@dataclass
class LogModel:
    """One history as far as it has come."""

    name: str  # of the topic
    config: dict[str, str]
    topic_id: str | None = None
    directory: int = 0
    life: int = 0  # how often it was created
    exists: bool = False
    follows: bool = True  # the high watermark follows the end of the log
    truth: LogTruth = field(default_factory=LogTruth)
    start: int = 0  # as it was last seen
    start_floor: int = 0  # below which it may not be found again
    start_peak: int = 0  # the highest there was and is not taken back: below it keys may be gone
    start_of_brokers: int = 0  # the highest that a broker has set and that was not lost since
    peak_of_brokers: int = 0  # likewise, lost or not
    durable_start: int = 0  # in the checkpoint when a broker is killed
    retained_ms: int = 0  # what is younger is not for our retention
    was_truncated: bool = False
    undo_was_cut: bool = False  # and was not run again
    tombstones: dict[int, Tombstone] = field(default_factory=dict)
    kept: list[KeptRun] = field(default_factory=list)
    earlier: dict[str, list[int]] = field(default_factory=dict)  # entries of checkpoints
    problems: list[str] = field(default_factory=list)

    @property
    def partition(self) -> str:
        return f"{self.name}-0"

    def create(self, topic_id: str | None, directory: int) -> None:
        """A topic of that name, made anew."""
        self.life += 1
        self.topic_id, self.directory, self.exists = topic_id, directory, True
        self.truth = LogTruth()
        self.start = self.start_floor = self.start_peak = 0
        self.start_of_brokers = self.peak_of_brokers = self.durable_start = self.retained_ms = 0
        self.tombstones, self.earlier = {}, {}
        self.was_truncated = self.undo_was_cut = False

    def began_at(self, start: int) -> None:
        """A broker says where the log begins."""
        if start > self.start:
            self.start_of_brokers = max(self.start_of_brokers, start)
            self.peak_of_brokers = max(self.peak_of_brokers, start)
        self.start, self.start_peak = start, max(self.start_peak, start)

    def cleaned(self, now_ms: int, config: Mapping[str, str]) -> None:
        """Some cleaner may have been over the whole log."""
        delete_retention_ms = int(config.get("delete.retention.ms", 86_400_000))
        for tombstone in self.tombstones.values():
            tombstone.cleaned(now_ms, delete_retention_ms)

    def retained(self, now_ms: int, config: Mapping[str, str]) -> None:
        """Our retention may have taken what is old enough."""
        if "delete" in config["cleanup.policy"]:
            self.retained_ms = max(self.retained_ms, now_ms - int(config["retention.ms"]))

    def undone(self, path: str) -> None:
        """It may begin again where it began before that run, but for what brokers did since."""
        for run in self.kept:
            if run.path == path and run.life == self.life:
                floor = max(run.start_before, self.start_of_brokers)
                self.start_floor = min(self.start_floor, floor)
                peak = max(run.peak_before, self.peak_of_brokers)
                self.start_peak = min(self.start_peak, peak)
