"""Say what helps where a log is not cleaned: sentences and commands for each kind of reason.

Shown with every reason: by `explain`, and by each table of the logs of a plan or a run. The
commands are made for one log, with its directory, its broker and its producers. The functions
that make them come before `REMEDIES`, the table that names them.
"""

import os
import pwd
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from compactor.host.shell_commands import (
    as_user,
    compactor,
    kafka,
    named,
    option,
    owner_of,
    tool,
    valued,
)
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import meta_properties


class OpenSince(NamedTuple):
    """A transaction that is open in a log."""

    producer_id: int
    first_offset: int


class NamedLog(NamedTuple):
    """Which log a remedy is for, and what is known of it."""

    log_dir: str
    topic: str
    partition: int
    others: tuple[str, ...] = ()  # log directories that hold a log of the same name
    open_since: tuple[OpenSince, ...] = ()  # empty where nobody has looked

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


Commands = Callable[[NamedLog], tuple[str, ...]]


class Remedy(NamedTuple):
    """What to do: sentences, then commands that can be pasted into a shell."""

    words: str
    commands: tuple[str, ...]
    briefly: str


_RIGHT_METADATA = (
    "If it does exist, this is another cluster's metadata log: name the right one by --metadata "
    "DIR, or go without by --no-metadata and --topic-configs FILE."
)
_FROM_ELSEWHERE = (
    "If another replica is sound, remove this directory while the broker is stopped, and the "
    "broker fetches it again; or bring it back from a backup. This says what is wrong with it, "
    "and what is enough if less is:"
)

_NOT_YET = "Start no broker here before what stands in the way of its start is mended. Then:"
_NOT_YET_BRIEFLY = "first mend what stands in the way of a broker's start: see below"


def none(_: NamedLog) -> tuple[str, ...]:
    return ()


def all_of(*parts: Commands) -> Commands:
    """One after the other."""
    return lambda log: tuple(command for part in parts for command in part(log))


def of_log(command: str, *options: str) -> Commands:
    """A command about this one log."""
    return lambda log: (compactor(command, log.log_dir, log.name, options=options),)


def of_each_directory(command: str) -> Commands:
    """Make the command for each directory that has a log of this name."""
    return lambda log: tuple(
        compactor(command, log_dir, log.name) for log_dir in (log.log_dir, *log.others)
    )


def recovered(log: NamedLog) -> tuple[str, ...]:
    return (compactor("recover", log.log_dir),)


def run_at_any_ratio(log: NamedLog) -> tuple[str, ...]:
    """A run of this topic alone, which does not wait until enough of it is dirty."""
    options = ("--include", re.escape(log.topic), "--set", "min.cleanable.dirty.ratio=0")
    return (compactor("run", log.log_dir, options=options),)


def altered(setting: str) -> Commands:
    """Give the topic another setting."""
    return lambda log: (kafka("configs", "--alter", *_topic(log), "--add-config", setting),)


def described(log: NamedLog) -> tuple[str, ...]:
    return (kafka("configs", *_topic(log), "--describe"),)


def settings_of_all(_: NamedLog) -> tuple[str, ...]:
    return (all_described(),)


def under_replicated(_: NamedLog) -> tuple[str, ...]:
    return (kafka("topics", "--describe", "--under-replicated-partitions"),)


def reassignment(_: NamedLog) -> tuple[str, ...]:
    return (kafka("reassign-partitions", "--reassignment-json-file", "FILE", "--verify"),)


def clock(_: NamedLog) -> tuple[str, ...]:
    return (tool("timedatectl"),)


def of_open_transactions(log: NamedLog) -> tuple[str, ...]:
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


def command_for_owner(log: NamedLog) -> tuple[str, ...]:
    return (owner_of(log.log_dir, os.path.join(log.log_dir, log.name), "-R"),)


def as_owner(log: NamedLog) -> tuple[str, ...]:
    """The command that says more, by the owner of the directory; none where that is us."""
    try:
        owner = LOCAL.status(log.log_dir)
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


def _topic(log: NamedLog) -> tuple[str, ...]:
    return "--entity-type", "topics", *valued("--entity-name", log.topic)


def _broker_id(log: NamedLog) -> str:
    with suppress(OSError, CorruptFileError):
        return str(meta_properties.read(log.log_dir, LOCAL).node_id)
    return "ID"


class RemedyOfAny(NamedTuple):
    """What to do for any log of a kind: its commands are made for one."""

    words: str
    commands: Commands = none
    briefly: str = ""  # for a line of a table; empty where nothing has to be done


REMEDIES: Mapping[ReasonCode, RemedyOfAny] = {
    ReasonCode.UNKNOWN_POLICY: RemedyOfAny(
        "Say what its cleanup.policy is: --metadata DIR names the broker's metadata log, and "
        "--topic-configs FILE takes what this prints:",
        settings_of_all,
        briefly="say what its policy is: --metadata DIR or --topic-configs FILE",
    ),
    ReasonCode.SETTINGS_DISAGREE: RemedyOfAny(
        "Correct the file, or leave this topic out of it: then the metadata log decides. If the "
        "file is right: {trusted}. While the broker runs, this shows what is "
        "in effect today:",
        described,
        briefly="correct the file; if it is right: --trust-topic-configs TOPIC",
    ),
    ReasonCode.NOT_COMPACTED: RemedyOfAny(
        "Nothing, if its records may go by age or size alone. If only the latest record of each "
        "key is wanted:",
        altered("cleanup.policy=compact"),
    ),
    ReasonCode.BELOW_RATIO: RemedyOfAny(
        "Nothing: it is compacted once enough has been appended. The first command compacts it "
        "now, while the broker is stopped. With the second it is compacted more often:",
        all_of(run_at_any_ratio, altered("min.cleanable.dirty.ratio=0.1")),
        briefly="wait, or run with --set min.cleanable.dirty.ratio=0",
    ),
    ReasonCode.MIN_COMPACTION_LAG: RemedyOfAny(
        "Nothing: it is compacted once its records are old enough. To have it compacted sooner, "
        "lower its min.compaction.lag.ms; consumers that are behind may then miss what is not "
        "the latest record of its key.",
        briefly="wait, or lower min.compaction.lag.ms",
    ),
    ReasonCode.OPEN_TRANSACTION: RemedyOfAny(
        "Start the broker: a producer that is alive ends its transaction, and one that has run out "
        "of time is aborted. If it stays open, it hangs: find-hanging shows it, and Kafka's "
        "abort ends it. For a log whose broker stays stopped, and which has no other replica, "
        f"{named('log abort')} does; {named('explain')} shows that command, with the producer.",
        of_open_transactions,
        briefly=f"start the broker, which ends it; if it hangs, {named('explain')} says how to end "
        "it",
    ),
    ReasonCode.HIGH_WATERMARK: RemedyOfAny(
        "Followers have not got all of it, or the broker stopped before it had written so down. "
        "Start the broker, wait until this shows no partition, and stop it cleanly. If this copy "
        "is the only one, as a backup is: --assume-fully-replicated.",
        under_replicated,
        briefly="start the broker until replicas have it; of an only copy: "
        "--assume-fully-replicated",
    ),
    ReasonCode.ACTIVE_SEGMENT: RemedyOfAny(
        "Nothing is cleaned before the log begins a new segment, as it does at segment.bytes or "
        "segment.ms. Lower these for the topic, or begin one while the broker is stopped:",
        all_of(altered("segment.ms=3600000"), of_log("log roll")),
        briefly=f"wait for a new segment, or begin one: {named('log roll')}",
    ),
    ReasonCode.NOTHING_NEW: RemedyOfAny(
        "Nothing: it is compacted. What is newer follows when the log has begun a new segment. "
        "This begins one, while the broker is stopped:",
        of_log("log roll"),
    ),
    ReasonCode.EMPTY: RemedyOfAny("Nothing: it is empty."),
    ReasonCode.LEFT_OUT: RemedyOfAny(
        "Change --include or --exclude, or [round] of the --config file."
    ),
    ReasonCode.NOT_REVIEWED: RemedyOfAny(
        "Plan again, with --save: it became eligible since.",
        briefly="plan again, with --save",
    ),
    ReasonCode.OVER_BUDGET: RemedyOfAny(
        "Another run takes it, or this one with a larger budget.",
        briefly="run again, or with a larger budget",
    ),
    ReasonCode.NO_ROOM: RemedyOfAny(
        "Free some room on that file system, or give another one with --work-dir or "
        "--keep-originals if it is one of these that needs it.",
        briefly="free some room, or give another disk by --work-dir or --keep-originals",
    ),
    ReasonCode.METADATA_LOG: RemedyOfAny("Nothing: brokers keep it small by its snapshots."),
    ReasonCode.TOPIC_DELETED: RemedyOfAny(
        "Nothing: a broker that starts puts such a log aside as a stray one. " + _RIGHT_METADATA,
        briefly="nothing, or name the right metadata log: --metadata DIR",
    ),
    ReasonCode.TOPIC_ID_MISMATCH: RemedyOfAny(
        "Nothing: it has records of the old topic, and a broker that starts puts it aside as a "
        "stray log. Copy it first if they are still wanted. " + _RIGHT_METADATA,
        briefly="nothing, or name the right metadata log: --metadata DIR",
    ),
    ReasonCode.NO_TOPIC_ID: RemedyOfAny(
        "Start no broker: it would rename this log to -stray, and make an empty one in its place. "
        "If the log is of this cluster, write the id of its topic into its partition.metadata; "
        "this says which it is. If it is from an older broker or another cluster: --no-metadata "
        "with --topic-configs FILE.",
        of_log("verify"),
        briefly=f"write its topic id into partition.metadata: {named('verify')} names it",
    ),
    ReasonCode.MOVING: RemedyOfAny(
        "Start the broker: it goes on with the move if the log itself is still there. This, with "
        "the file that asked for the move, says how far it is; --execute in place of --verify asks "
        "for the move again, --cancel ends it:",
        reassignment,
        briefly="start the broker: it goes on with the move if the log itself is still there",
    ),
    ReasonCode.CLOCK_BEHIND: RemedyOfAny(
        "Compare this machine's clock with the broker's, and look at --as-of if you gave it. If "
        "both are right, --any-clock takes the log as it is.",
        clock,
        briefly="set the clock right, or --any-clock",
    ),
    ReasonCode.IN_TWO_LOG_DIRS: RemedyOfAny(
        "Find out which of the two is the right one, and move the other out of its log directory. "
        "This shows where each begins and ends:",
        of_each_directory("log offsets"),
        briefly=f"find out which is the right one: {named('log offsets')} of each",
    ),
    ReasonCode.CUT_SHORT: RemedyOfAny(
        "A run finishes it first, as a broker that starts does; or finish it alone:",
        recovered,
        briefly=f"{named('recover')}, or run again",
    ),
    ReasonCode.FOREIGN_FILE: RemedyOfAny(
        "If it is a link, put the file itself in its place. Otherwise move it out of the log "
        "directory: it was not made by Kafka, and a broker may not start with it.",
        briefly="put the file itself where a link stands; move it out of the log directory if it "
        "is none",
    ),
    ReasonCode.LOG_DIR_DAMAGED: RemedyOfAny(
        "Look at the file that is named. If it is beyond repair and you remove it, what it said is "
        "lost: without cleaner-offset-checkpoint all logs are cleaned from their start; without "
        "log-start-offset-checkpoint deleted records may come back; without "
        "replication-offset-checkpoint nothing says how far the logs are replicated.",
        briefly="look at the file that is named",
    ),
    ReasonCode.SET_ASIDE: RemedyOfAny(
        "A log that has changed is tried again by the next run, and others with --retry. "
        + _FROM_ELSEWHERE,
        of_log("verify"),
        briefly=f"{named('verify')} says what is wrong; --retry tries it again",
    ),
    ReasonCode.DAMAGED: RemedyOfAny(
        _FROM_ELSEWHERE,
        of_log("verify"),
        briefly=f"{named('verify')} says what is wrong, and what mends it",
    ),
    ReasonCode.METADATA_DAMAGED: RemedyOfAny(
        "Name a sound metadata log of the same cluster, as another controller or broker has it: "
        "--metadata DIR. Or say what the topic's settings are: --topic-configs FILE takes what "
        "this prints:",
        settings_of_all,
        briefly="name a sound metadata log (--metadata DIR), or --topic-configs FILE",
    ),
    ReasonCode.METADATA_CONTRADICTED: RemedyOfAny(
        "Name the metadata log that is in use, as the broker's metadata.log.dir, another broker or "
        "a controller has it: --metadata DIR. Or say what the topic's settings are, and leave the "
        "old metadata log out: --no-metadata with --topic-configs FILE, which takes what this "
        "prints:",
        settings_of_all,
        briefly="name the metadata log in use (--metadata DIR), or --no-metadata and "
        "--topic-configs FILE",
    ),
    ReasonCode.UNREADABLE: RemedyOfAny(
        "Put the directory itself where a link stands. Otherwise work as the broker's user, or "
        "look at the disk (dmesg). If a broker or another run is at work there, ask again.",
        as_owner,
        briefly="work as the broker's user, or look at the disk",
    ),
    ReasonCode.NO_PERMISSION: RemedyOfAny(
        "Give the files of the log to the user who owns its log directory, and work as that user:",
        command_for_owner,
        briefly="give its files to the owner of the log directory, and work as that user",
    ),
    ReasonCode.SEGMENT_TOO_LARGE: RemedyOfAny(
        "No broker writes such a segment: bring the log back from another replica or a backup.",
        briefly="bring it back from a replica or a backup",
    ),
    ReasonCode.UNSUPPORTED_FORMAT: RemedyOfAny(
        "It is of a version or codec that is not handled here, and the reason names it. A broker "
        "that knows it cleans it.",
        briefly="leave it to a broker that knows it",
    ),
    ReasonCode.LOG_MISSING: RemedyOfAny(
        "Bring its files back from a backup that has them, before a broker starts here. If another "
        "replica has the records, remove what is left of its directory while the broker is "
        "stopped, and the broker fetches the log again.",
        briefly="start no broker; bring its files back from a backup",
    ),
    ReasonCode.RECORD_TOO_LARGE: RemedyOfAny(
        "Raise max.decompressed.message.bytes of its topic to the size that the reason names. With "
        "--set max.decompressed.message.bytes=BYTES a run takes another limit for every topic.",
        briefly="raise max.decompressed.message.bytes of its topic",
    ),
    ReasonCode.NULL_KEYS: RemedyOfAny(
        "Look at some of them. If they are from before the topic was compacted, and may go: "
        "--drop-null-keys. Otherwise its cleanup.policy may not be what was meant.",
        of_log("log read", "--limit", "20"),
        briefly="look at them; --drop-null-keys lets them go",
    ),
    ReasonCode.CHANGED_MEANWHILE: RemedyOfAny(
        "Something else writes into the log directory. Stop it, and run again.",
        briefly="stop what writes there, and run again",
    ),
    ReasonCode.INPUT_OUTPUT: RemedyOfAny(
        "Look at the disk (dmesg), and at the file that the reason names. Then run again.",
        briefly="look at the disk, and run again",
    ),
    ReasonCode.NOT_FOUND: RemedyOfAny(
        "Something has removed the file that the reason names. Find out what, and run again.",
        briefly="find out what removed the file, and run again",
    ),
    ReasonCode.TOO_FEW_OPEN_FILES: RemedyOfAny(
        "Allow this user more open files at once (ulimit -n), and run again.",
        briefly="raise ulimit -n, and run again",
    ),
    ReasonCode.FAULTY_MACHINE: RemedyOfAny(
        "What was read or written came out otherwise, by a fault of memory, of the disk or of this "
        "program. Run again; if it comes back, run on another machine.",
        briefly="run again; if it comes back, on another machine",
    ),
    ReasonCode.NOT_FINISHED: RemedyOfAny(
        "It is cleaned, and another run does what is left.",
        briefly="run again",
    ),
    ReasonCode.FAILED: RemedyOfAny(
        "Set right what the reason names, and run again.",
        briefly="see the reason, and run again",
    ),
}


def brief_of(code: ReasonCode, may_start: bool) -> str:
    """What helps, for a line of a table; empty where nothing has to be done."""
    briefly = REMEDIES[code].briefly
    return briefly if may_start or "start the broker" not in briefly else _NOT_YET_BRIEFLY


def remedy_of(code: ReasonCode, log: NamedLog, may_start: bool = True) -> Remedy:
    """What helps a log that is not cleaned for this reason.

    may_start: whether a broker's start on the log directory goes well.
    """
    words, commands, _ = REMEDIES[code]
    if not may_start and "tart the broker" in words:
        words = f"{_NOT_YET} {words}"
    names = {"trusted": option("--trust-topic-configs", log.topic)}
    return Remedy(words.format_map(names), commands(log), brief_of(code, may_start))
