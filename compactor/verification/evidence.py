"""Evidence of why something is gone: reports, settings, the copy itself, the cleaning's clock.

A comparison is about all that was done between its two sides. Reports say of each log which rounds
went over it, when, how far, and what other commands took away. A cleaning by a broker writes no
report: it shows in the cleaner's checkpoint, which the reported rounds do not account for. Then
everything that the settings allow since the copy was made is possible; else only what the reports
say.

Of the clock it is known by default only that the cleaning is over. `--as-of` names it; the report
of a run says it, too, and `delete.retention.ms` of each log: their sum is the delete horizon that
the run has set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from compactor.settings.config import Config
from compactor.settings.topic_config import TopicConfig

LogKey = tuple[str, int]  # topic and partition
MAX_LONG = 2**63 - 1


class Round(NamedTuple):
    """What a report says of a round over one log."""

    as_of_ms: int
    horizons_from_ms: int
    delete_retention_ms: int | None = None  # None: not known
    first_dirty_offset: int | None = None
    end_offset: int | None = None  # of a round that was complete; None: it was cut short


class ReportedAppend(NamedTuple):
    """A record that `log append` has added."""

    offset: int
    key: str | None  # SHA-256 of the key, in hexadecimal
    is_tombstone: bool


class Truncation(NamedTuple):
    """What a report says of `log truncate`."""

    at_ms: int  # when it began
    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What reports say of one log, in the order in which things happened."""

    rounds: tuple[Round, ...] = ()
    truncations: tuple[Truncation, ...] = ()
    log_start: int | None = None  # where the log began, at the highest
    log_end: int | None = None  # where the last command that changed its end has left it
    appended: tuple[ReportedAppend, ...] = ()

    @property
    def truncated_to(self) -> int | None:
        """The lowest offset that the log ended at; None: it was not truncated."""
        return min((each.to for each in self.truncations), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All evidence beside the two log directories."""

    logs: Mapping[LogKey, Reported] = field(default_factory=dict)
    cut_short: tuple[Round, ...] = ()  # rounds that ended before they said anything of a log
    config: Config | None = None
    has_reports: bool = False
    now_ms: int | None = None  # the present, where reports say when the cleanings were

    @property
    def truncated_to(self) -> Mapping[LogKey, int]:
        """Return where logs ended, by reports."""
        found = {key: log.truncated_to for key, log in self.logs.items()}
        return {key: offset for key, offset in found.items() if offset is not None}

    def settings_of(self, topic: str) -> TopicConfig | None:
        """The settings of a topic, where somebody says what its policy is."""
        found = None if self.config is None else self.config.topic(topic)
        return found if found is not None and found.cleanup_policy is not None else None

    def of(self, topic: str, partition: int) -> "LogEvidence":
        """What is known of one log."""
        reported = self.logs.get((topic, partition), Reported())
        settings = self.settings_of(topic)
        found = [
            r.delete_retention_ms for r in reported.rounds if r.delete_retention_ms is not None
        ]
        of_settings = None if settings is None else settings.delete_retention_ms
        retention_ms = found[-1] if found else of_settings
        rounds = tuple(
            r if r.delete_retention_ms is not None else r._replace(delete_retention_ms=retention_ms)
            for r in sorted((*reported.rounds, *self.cut_short), key=attrgetter("as_of_ms"))
        )
        return LogEvidence(
            rounds=rounds,
            reported=reported,
            settings=settings,
            has_reports=self.has_reports,
            delete_retention_ms=retention_ms,
            now_ms=self.now_ms,
        )


NOTHING = Evidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvidence:
    """What is known of one log beside its two sides."""

    rounds: tuple[Round, ...] = ()
    reported: Reported = field(default_factory=Reported)
    settings: TopicConfig | None = None
    has_reports: bool = False
    delete_retention_ms: int | None = None
    now_ms: int | None = None
    written_ms: int = MAX_LONG  # when the log before was written last
    is_accounted_for: bool = True  # the reported rounds account for the cleaner's checkpoint

    @property
    def complete(self) -> Sequence[Round]:
        return [each for each in self.rounds if each.end_offset is not None]

    @property
    def horizons(self) -> frozenset[int] | None:
        """Every delete horizon that a reported round has set; None: not known.

        Above MAX_LONG, it has set none (C-11.8).
        """
        if any(each.delete_retention_ms is None for each in self.rounds):
            return None
        return frozenset(_horizon(each) for each in self.rounds)

    @property
    def latest_ms(self) -> int:
        """The latest clock that a cleaning may have had."""
        now_ms = MAX_LONG if self.now_ms is None else self.now_ms
        return self._last_ms(now_ms) if self.is_accounted_for else now_ms

    def of_copy_written(self, written_ns: int) -> "LogEvidence":
        """Add the time of the last write to the copy: a truncation was after that."""
        written_ms = written_ns // 1_000_000
        since = [each for each in self.reported.truncations if each.at_ms >= written_ms]
        reported = replace(self.reported, truncations=tuple(since))
        return replace(self, written_ms=written_ms, reported=reported)

    @property
    def superseding_end(self) -> int:
        """Return up to where records of the copy may have superseded others, exclusive.

        A round did not see what a truncation had removed before it.
        """
        truncations = self.reported.truncations
        if not truncations:
            return MAX_LONG
        seen = [
            min((each.to for each in truncations if each.at_ms <= one.as_of_ms), default=MAX_LONG)
            for one in self.rounds
        ]
        return max([min(each.to for each in truncations), *seen])

    @property
    def is_one_round(self) -> bool:
        """Whether the log is the result of one round."""
        if self.has_reports:
            return len(self.rounds) == 1 and self.is_accounted_for
        return self.settings is None

    def expired_below(self) -> int:
        """Return below which offset a tombstone without a delete horizon may be gone.

        One round has set the horizon, and a later one has come after it.
        """
        found = [0]
        for number, later in enumerate(self.rounds):
            for earlier in self.rounds[:number]:
                is_known = earlier.delete_retention_ms is not None
                if is_known and _horizon(earlier) <= later.as_of_ms:
                    ends = [e.end_offset for e in (earlier, later) if e.end_offset is not None]
                    found.append(min(ends, default=MAX_LONG))
        return max(found)

    def allows_horizon(self, horizon_ms: int, now_ms: int) -> bool:
        """Return whether an unreported cleaning since the copy was made may have set a horizon.

        That is a broker's cleaning, or a run that was killed.
        """
        retention_ms = self.delete_retention_ms
        if retention_ms is None:
            return False
        return self.written_ms + retention_ms <= horizon_ms <= now_ms + retention_ms

    def allows_expiry(self, now_ms: int) -> bool:
        """Whether a horizon that a cleaning has set since the copy was made may have passed."""
        last_ms = now_ms if not self.is_accounted_for else self._last_ms(now_ms)
        retention_ms = self.delete_retention_ms
        return retention_ms is not None and self.written_ms + retention_ms <= last_ms

    def _last_ms(self, now_ms: int) -> int:
        return max((each.as_of_ms for each in self.rounds), default=now_ms)


def accounts_for(rounds: Sequence[Round], was: int | None, now: int | None, start: int) -> bool:
    """Return whether complete rounds explain why the cleaner's checkpoint moved from was to now.

    start: the log's current start offset; a round whose checkpoint is below it begins there.
    """
    at = was or 0
    for each in rounds:
        first = each.first_dirty_offset
        if first is not None and first > max(at, start):
            return False
        at = max(at, each.end_offset or 0)
    return now is None or now <= at


def _horizon(each: Round) -> int:
    return each.horizons_from_ms + (each.delete_retention_ms or 0)


class LogClock(NamedTuple):
    """What is known of the cleaning of one log."""

    as_of_ms: int  # no later than this; that very moment where is_exact
    is_exact: bool = False
    delete_retention_ms: int | None = None  # None: not known
    horizons_from_ms: int | None = None  # of those that it has set; None: as_of_ms
    evidence: LogEvidence = LogEvidence()

    @property
    def complete_as_of_ms(self) -> int | None:
        """The clock of the last complete cleaning; None: not known."""
        if not self.evidence.has_reports:
            return self.as_of_ms if self.is_exact else None
        complete = self.evidence.complete
        return complete[-1].as_of_ms if complete else None

    @property
    def horizons(self) -> frozenset[int] | None:
        """Every delete horizon that may have been set; None: not known."""
        if self.evidence.has_reports:
            return self.evidence.horizons
        return None if self.horizon_ms is None else frozenset([self.horizon_ms])

    @property
    def horizon_ms(self) -> int | None:
        """The delete horizon that batches got; None: not known.

        Above MAX_LONG, they got none (C-11.8).
        """
        if not self.is_exact or self.delete_retention_ms is None:
            return None
        from_ms = self.as_of_ms if self.horizons_from_ms is None else self.horizons_from_ms
        return from_ms + self.delete_retention_ms


class CleaningClock(NamedTuple):
    """What is known of the cleaning of a log directory."""

    as_of_ms: int
    is_exact: bool = False
    delete_retention_ms: Mapping[tuple[str, int], int] = {}  # by topic and partition
    horizons_from_ms: int | None = None  # as of a log
    evidence: Evidence = NOTHING

    def of(self, topic: str, partition: int) -> LogClock:
        retention_ms = self.delete_retention_ms.get((topic, partition))
        evidence = self.evidence.of(topic, partition)
        return LogClock(self.as_of_ms, self.is_exact, retention_ms, self.horizons_from_ms, evidence)


class Soundness(StrEnum):
    WHOLE = "whole"  # the latest record of every key is there
    REMOVED = "removed"  # what is gone was to go, and something shows it
    UNEXPLAINED = "unexplained"  # something is not as it was, and nothing shows why
