"""What helps where a log is not cleaned: a sentence or two for each kind of reason. Pure.

Shown wherever there is a reason: by `explain`, and by whatever lists the logs of a plan or a run.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from compactor.host.printable import shell_word
from compactor.reason_codes import ReasonCode

_ALTER = (
    "kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type topics "
    "--entity-name {topic} --add-config "
)
_ROLL = "compactor log roll {log_dir} {log}"
_VERIFY = "compactor verify {log_dir} {log}"
_RIGHT_METADATA = (
    "If it does exist, this is another cluster's metadata log: name the right one by --metadata "
    "DIR, or go without by --no-metadata and --topic-configs FILE."
)
_FROM_ELSEWHERE = (
    "If another replica is sound, remove this directory while the broker is stopped, and the "
    "broker fetches it again; or bring it back from a backup. This says what is wrong with it:"
)


class Remedy(NamedTuple):
    """What to do: sentences, then commands that can be pasted into a shell."""

    words: str
    commands: tuple[str, ...] = ()
    briefly: str = ""  # for a line of a table; empty where nothing has to be done


REMEDIES: Mapping[ReasonCode, Remedy] = {
    ReasonCode.UNKNOWN_POLICY: Remedy(
        "Say what its cleanup.policy is: --metadata DIR names the broker's metadata log, and "
        "--topic-configs FILE takes what this prints:",
        (
            "kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics --describe --all "
            "> configs.txt",
        ),
        briefly="say what its policy is: --metadata DIR or --topic-configs FILE",
    ),
    ReasonCode.SETTINGS_DISAGREE: Remedy(
        "Correct the file, or leave this topic out of it: then the metadata log decides. If the "
        "file is right: --trust-topic-configs {topic}. While the broker runs, this shows what is "
        "in effect today:",
        (
            "kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics "
            "--entity-name {topic} --describe",
        ),
        briefly="correct the file; if it is right: --trust-topic-configs TOPIC",
    ),
    ReasonCode.NOT_COMPACTED: Remedy(
        "Nothing, if its records may go by age or size alone. If only the latest record of each "
        "key is wanted:",
        (_ALTER + "cleanup.policy=compact",),
    ),
    ReasonCode.BELOW_RATIO: Remedy(
        "Nothing: it is compacted once enough has been appended. To have it compacted now, run "
        "with --include {pattern} --set min.cleanable.dirty.ratio=0. To have it compacted more "
        "often:",
        (_ALTER + "min.cleanable.dirty.ratio=0.1",),
        briefly="wait, or run with --set min.cleanable.dirty.ratio=0",
    ),
    ReasonCode.MIN_COMPACTION_LAG: Remedy(
        "Nothing: it is compacted once its records are old enough. To have it compacted sooner, "
        "lower its min.compaction.lag.ms; consumers that are behind may then miss what is not "
        "the latest record of its key.",
        briefly="wait, or lower min.compaction.lag.ms",
    ),
    ReasonCode.OPEN_TRANSACTION: Remedy(
        "Start the broker: a producer that is alive ends its transaction, and one that has run out "
        "of time is aborted. If it stays open, it hangs: the first command finds it, and "
        "kafka-transactions.sh abort ends it. The second is for a log whose broker stays stopped, "
        "and which has no other replica.",
        (
            "kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --broker-id ID",
            "compactor log abort {log_dir} {log} --producer-id ID --only-replica",
        ),
        briefly="start the broker, which ends it; if it hangs: compactor explain",
    ),
    ReasonCode.HIGH_WATERMARK: Remedy(
        "Followers have not got all of it, or the broker stopped before it had written so down. "
        "Start the broker, wait until this shows no partition, and stop it cleanly. If this copy "
        "is the only one, as a backup is: --assume-fully-replicated.",
        ("kafka-topics.sh --bootstrap-server HOST:9092 --describe --under-replicated-partitions",),
        briefly="start the broker until replicas have it; of an only copy: "
        "--assume-fully-replicated",
    ),
    ReasonCode.ACTIVE_SEGMENT: Remedy(
        "Nothing is cleaned before the log begins a new segment, as it does at segment.bytes or "
        "segment.ms. Lower these for the topic, or begin one while the broker is stopped:",
        (_ALTER + "segment.ms=3600000", _ROLL),
        briefly="wait for a new segment, or begin one: compactor log roll",
    ),
    ReasonCode.NOTHING_NEW: Remedy(
        "Nothing: it is compacted. What is newer follows when the log has begun a new segment. "
        "This begins one, while the broker is stopped:",
        (_ROLL,),
    ),
    ReasonCode.EMPTY: Remedy("Nothing: it is empty."),
    ReasonCode.LEFT_OUT: Remedy("Change --include or --exclude, or [round] of the --config file."),
    ReasonCode.NOT_REVIEWED: Remedy(
        "Plan again, with --save: it became eligible since.",
        briefly="plan again, with --save",
    ),
    ReasonCode.OVER_BUDGET: Remedy(
        "Another run takes it, or this one with a larger budget.",
        briefly="run again, or with a larger budget",
    ),
    ReasonCode.NO_ROOM: Remedy(
        "Free some room on that file system, or give another one with --work-dir or "
        "--keep-originals if it is one of these that needs it.",
        briefly="free some room, or give another disk by --work-dir or --keep-originals",
    ),
    ReasonCode.METADATA_LOG: Remedy("Nothing: brokers keep it small by its snapshots."),
    ReasonCode.TOPIC_DELETED: Remedy(
        "Nothing: a broker that starts puts such a log aside as a stray one. " + _RIGHT_METADATA,
        briefly="nothing, or name the right metadata log: --metadata DIR",
    ),
    ReasonCode.TOPIC_ID_MISMATCH: Remedy(
        "Nothing: it has records of the old topic, and a broker that starts puts it aside as a "
        "stray log. Copy it first if they are still wanted. " + _RIGHT_METADATA,
        briefly="nothing, or name the right metadata log: --metadata DIR",
    ),
    ReasonCode.NO_TOPIC_ID: Remedy(
        "Start no broker: it would rename this log to -stray, and make an empty one in its place. "
        "If the log is of this cluster, write the id of its topic into its partition.metadata; "
        "this says which it is. If it is from an older broker or another cluster: --no-metadata "
        "with --topic-configs FILE.",
        (_VERIFY,),
        briefly="write its topic id into partition.metadata: compactor verify names it",
    ),
    ReasonCode.MOVING: Remedy(
        "Start the broker and let it finish the move, or cancel it by --cancel in place of "
        "--verify. This says how far it is:",
        (
            "kafka-reassign-partitions.sh --bootstrap-server HOST:9092 "
            "--reassignment-json-file FILE --verify",
        ),
        briefly="start the broker, and let it finish the move",
    ),
    ReasonCode.CLOCK_BEHIND: Remedy(
        "Compare this machine's clock with the broker's, and look at --as-of if you gave it. If "
        "both are right, --any-clock takes the log as it is.",
        ("timedatectl",),
        briefly="set the clock right, or --any-clock",
    ),
    ReasonCode.IN_TWO_LOG_DIRS: Remedy(
        "Find out which of the two is the right one, and move the other out of its log directory. "
        "This shows where each begins and ends:",
        ("compactor log offsets {log_dir} {log}",),
        briefly="find out which is the right one: compactor log offsets",
    ),
    ReasonCode.CUT_SHORT: Remedy(
        "Run it again, which finishes it first; or finish it alone:",
        ("compactor recover {log_dir}",),
        briefly="compactor recover, or run again",
    ),
    ReasonCode.FOREIGN_FILE: Remedy(
        "Move it out of the log directory. It was not made by Kafka, and a broker may not start "
        "with it.",
        briefly="move it out of the log directory",
    ),
    ReasonCode.LOG_DIR_DAMAGED: Remedy(
        "Look at the file that is named. If it is beyond repair and you remove it, what it said is "
        "lost: without cleaner-offset-checkpoint all logs are cleaned from their start; without "
        "log-start-offset-checkpoint deleted records may come back; without "
        "replication-offset-checkpoint nothing says how far the logs are replicated.",
        briefly="look at the file that is named",
    ),
    ReasonCode.SET_ASIDE: Remedy(
        "A log that has changed is tried again by the next run, and others with --retry. "
        + _FROM_ELSEWHERE,
        (_VERIFY,),
        briefly="compactor verify says what is wrong; --retry tries it again",
    ),
    ReasonCode.DAMAGED: Remedy(
        _FROM_ELSEWHERE,
        (_VERIFY,),
        briefly="compactor verify says what is wrong; fetch it again from a sound replica",
    ),
    ReasonCode.METADATA_DAMAGED: Remedy(
        "Name a sound metadata log of the same cluster, as another controller or broker has it: "
        "--metadata DIR. Or say what the topic's settings are: --topic-configs FILE takes what "
        "this prints:",
        (
            "kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics --describe --all "
            "> configs.txt",
        ),
        briefly="name a sound metadata log (--metadata DIR), or --topic-configs FILE",
    ),
    ReasonCode.METADATA_CONTRADICTED: Remedy(
        "Name the metadata log that is in use, as the broker's metadata.log.dir, another broker or "
        "a controller has it: --metadata DIR. Or say what the topic's settings are, and leave the "
        "old metadata log out: --no-metadata with --topic-configs FILE, which takes what this "
        "prints:",
        (
            "kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics --describe --all "
            "> configs.txt",
        ),
        briefly="name the metadata log in use (--metadata DIR), or --no-metadata and "
        "--topic-configs FILE",
    ),
    ReasonCode.UNREADABLE: Remedy(
        "Put the directory itself where a link stands. Otherwise work as the broker's user (sudo "
        "-u kafka), or look at the disk (dmesg). If a broker or another run is at work there, ask "
        "again.",
        briefly="work as the broker's user, or look at the disk",
    ),
    ReasonCode.NO_PERMISSION: Remedy(
        "Give the files of the log to the user who owns its log directory, and work as that user:",
        ("sudo chown -R --reference={log_dir} {path}",),
        briefly="give its files to the owner of the log directory, and work as that user",
    ),
    ReasonCode.SEGMENT_TOO_LARGE: Remedy(
        "No broker writes such a segment: bring the log back from another replica or a backup.",
        briefly="bring it back from a replica or a backup",
    ),
    ReasonCode.UNSUPPORTED_FORMAT: Remedy(
        "It is of a version or codec that is not handled here, and the reason names it. A broker "
        "that knows it cleans it.",
        briefly="leave it to a broker that knows it",
    ),
    ReasonCode.LOG_MISSING: Remedy(
        "Bring its .log files back from a backup that has them, before a broker starts here. If "
        "another replica has the records, remove this directory while the broker is stopped, and "
        "the broker fetches the log again.",
        briefly="start no broker; bring its .log files back from a backup",
    ),
    ReasonCode.NULL_KEYS: Remedy(
        "Look at some of them. If they are from before the topic was compacted, and may go: "
        "--drop-null-keys. Otherwise its cleanup.policy may not be what was meant.",
        ("compactor log read {log_dir} {log} --limit 20",),
        briefly="look at them; --drop-null-keys lets them go",
    ),
    ReasonCode.CHANGED_MEANWHILE: Remedy(
        "Something else writes into the log directory. Stop it, and run again.",
        briefly="stop what writes there, and run again",
    ),
    ReasonCode.INPUT_OUTPUT: Remedy(
        "Look at the disk (dmesg), and at the file that the reason names. Then run again.",
        briefly="look at the disk, and run again",
    ),
    ReasonCode.FAULTY_MACHINE: Remedy(
        "What was read or written came out otherwise, by a fault of memory, of the disk or of this "
        "program. Run again; if it comes back, run on another machine.",
        briefly="run again; if it comes back, on another machine",
    ),
    ReasonCode.NOT_FINISHED: Remedy(
        "It is cleaned, and another run does what is left.",
        briefly="run again",
    ),
    ReasonCode.FAILED: Remedy(
        "Set right what the reason names, and run again.",
        briefly="see the reason, and run again",
    ),
}


_NOT_YET = "Start no broker here before what stands in the way of its start is mended. Then:"
_NOT_YET_BRIEFLY = "first mend what stands in the way of a broker's start: see below"


class LogPlace(NamedTuple):
    """Which log a remedy is for."""

    log_dir: str
    topic: str
    partition: int


def brief_of(code: ReasonCode, may_start: bool) -> str:
    """What helps, for a line of a table; empty where nothing has to be done."""
    briefly = REMEDIES[code].briefly
    return briefly if may_start or "start the broker" not in briefly else _NOT_YET_BRIEFLY


def remedy_of(code: ReasonCode, place: LogPlace, may_start: bool = True) -> Remedy:
    """What helps a log that is not cleaned for this reason.

    may_start: whether a broker that starts there goes well.
    """
    names = {
        "log_dir": shell_word(place.log_dir),
        "topic": shell_word(place.topic),
        "path": shell_word(os.path.join(place.log_dir, f"{place.topic}-{place.partition}")),
        "log": shell_word(f"{place.topic}-{place.partition}"),
        "pattern": shell_word(re.escape(place.topic)),
    }
    words, commands, _ = REMEDIES[code]
    told = tuple(command.format_map(names) for command in commands)
    if not may_start and "tart the broker" in words:
        words = f"{_NOT_YET} {words}"
    return Remedy(words.format_map(names), told, brief_of(code, may_start))
