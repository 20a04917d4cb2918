"""What a caller says: by what a round goes, and how it is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The options that `plan`, `run`, `recover` and `explain` share, as of the command line.

    Files are read once in a call, so that one may be a pipe.
    """

    config: str | None = None  # file of defaults and settings by pattern, TOML
    # settings by topic: a file of JSON, or what would stand there
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # for every topic; precede all files
    include: str | None = None  # regular expression over whole names of topics; None: every one
    exclude: str | None = None  # wins over include
    as_of: str | int | None = None  # epoch milliseconds or ISO 8601; None: the present
    any_clock: bool = False  # however doubtful the clock is, and the times of files
    assume_fully_replicated: bool = False  # the end of each log is its high watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `run` alone, as of the command line."""

    dry_run: bool = False
    map_capacity: int | None = None  # keys of a map, to stop where Kafka's cleaner would
    recover_first: bool = False  # after an unclean shutdown of the broker; else it is refused
    fail_on_corrupt: bool = False  # before anything is swapped in; else such a log is set aside
    retry: bool = False  # logs that earlier runs have set aside, though they have not changed
    drop_null_keys: bool = False  # though most of what would go has no key
    allowed_file_systems: tuple[str, ...] = ()  # where a lock may not exclude a broker elsewhere
    keep_originals: str | None = None  # directory for what is replaced or deleted, for `undo`
    keep_for_ms: int | None = None  # discard first what runs that began longer ago have kept there
    work_dir: str | None = None  # None: in the system's temporary directory
    master: str | None = (
        None  # of Spark; None: what spark-submit says, or else this machine's cores
    )
    session: "SparkSession | None" = None  # to use, and to leave open; else the run makes its own


KAFKAS_DEFAULTS = Rules()
ONE_ROUND = RunOptions()
