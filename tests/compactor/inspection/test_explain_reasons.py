"""Every reason for which a log is not cleaned: its kind, in words, and what to do about it."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor import api
from compactor.inspection.explain import Explanation
from compactor.log_dirs.set_aside_memory import (
    SET_ASIDE,
    MemoryContents,
    SetAside,
    digest_of_files,
    encode,
)
from compactor.planning import remedies
from compactor.planning.remedies import REMEDIES
from compactor.reason_codes import ReasonCode
from storage.file_names import LOG, file_name
from storage.files.local import LocalFiles
from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from tests.compactor.plan_logs import NOW_MS, Shape, build, clean_up_to, open_transaction
from tests.compactor.settings.test_cluster_settings import (
    ONE_BIT_FLIPPED,
    OTHER,
    cluster,
    damaged_cluster,
)
from tests.storage.log.test_cluster_metadata import A, B, config, topic

COMPACTED = {"t": {"cleanup.policy": "compact"}}
POLICY = config("cleanup.policy", "compact")


def asked(*log_dirs: str, any_clock: bool = True, **settings: str) -> Explanation:
    own = {name.replace("_", "."): value for name, value in settings.items()}
    topics = {"t": {"cleanup.policy": "compact"} | own}
    rules = api.Rules(topic_configs=topics, as_of=NOW_MS, any_clock=any_clock)
    return api.explain(log_dirs, "t-0", rules)


def by_metadata(data: Path) -> Explanation:
    return api.explain([str(data)], "t-0", api.Rules(as_of=NOW_MS, any_clock=True))


def no_policy(root: Path) -> Explanation:
    return api.explain([build(root)], "t-0", api.Rules(as_of=NOW_MS, any_clock=True))


def not_compacted(root: Path) -> Explanation:
    return asked(build(root), cleanup_policy="delete")


def not_dirty_enough(root: Path) -> Explanation:
    log_dir = build(root)
    clean_up_to(root, ("t", 0, 2))
    return asked(log_dir)


def too_young(root: Path) -> Explanation:
    return asked(build(root), min_compaction_lag_ms=str(7 * 86_400_000))


def open_since(root: Path) -> Explanation:
    log_dir = build(root, Shape(producer_id=7))
    open_transaction(root / "t-0", producer_id=7, first_offset=0, end_offset=6)
    return asked(log_dir)


def low_high_watermark(root: Path) -> Explanation:
    log_dir = build(root)
    checkpoint.write(str(root / checkpoint.REPLICATION), {("t", 0): 1})
    return asked(log_dir)


def one_segment(root: Path) -> Explanation:
    return asked(build(root, Shape(segments=1)))


def clean(root: Path) -> Explanation:
    log_dir = build(root)
    clean_up_to(root, ("t", 0, 4))
    return asked(log_dir)


def empty(root: Path) -> Explanation:
    log_dir = build(root)
    for path in (root / "t-0").iterdir():
        path.unlink()
    for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
        checkpoint.write(str(root / name), {("t", 0): 0})
    return asked(log_dir)


def log_missing(root: Path) -> Explanation:
    log_dir = build(root)
    for path in (root / "t-0").glob("*.log"):
        path.unlink()
    checkpoint.write(str(root / checkpoint.REPLICATION), {("t", 0): 6})
    return asked(log_dir)


def left_out(root: Path) -> Explanation:
    rules = api.Rules(topic_configs=COMPACTED, exclude="t", as_of=NOW_MS, any_clock=True)
    return api.explain([build(root)], "t-0", rules)


def metadata_log(root: Path) -> Explanation:
    log_dir = build(root, Shape("__cluster_metadata"))
    rules = api.Rules(as_of=NOW_MS, any_clock=True, no_metadata=True)
    return api.explain([log_dir], "__cluster_metadata-0", rules)


def deleted_topic(root: Path) -> Explanation:
    return by_metadata(cluster(root, topic("other", B)))


def damaged_metadata(root: Path) -> Explanation:
    return by_metadata(damaged_cluster(root, ONE_BIT_FLIPPED, is_clean=True))


def metadata_of_another_time(root: Path) -> Explanation:
    data = damaged_cluster(root, b"", is_clean=True)
    (data / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7}')
    return by_metadata(data)


def topic_created_anew(root: Path) -> Explanation:
    return by_metadata(cluster(root, topic("t", OTHER), POLICY))


def no_topic_id(root: Path) -> Explanation:
    data = cluster(root, topic("t", A), POLICY)
    (data / "t-0" / "partition.metadata").unlink()
    return by_metadata(data)


def settings_disagree(root: Path) -> Explanation:
    return asked(str(cluster(root, topic("t", A), config("cleanup.policy", "delete"))))


def moved(root: Path) -> Explanation:
    log_dir = build(root)
    (root / "t-0.0123456789abcdef0123456789abcdef-future").mkdir()
    return asked(log_dir)


def clock_behind(root: Path) -> Explanation:
    log_dir = build(root)
    os.utime(root / "t-0" / file_name(0, LOG), (2 * NOW_MS / 1000, 2 * NOW_MS / 1000))
    return asked(log_dir, any_clock=False)


def two_places(root: Path) -> Explanation:
    return asked(build(root / "1"), build(root / "2"))


def cut_short(root: Path) -> Explanation:
    log_dir = build(root)
    (root / "t-0" / f"{file_name(0, LOG)}.swap").write_bytes(b"")
    return asked(log_dir)


def foreign_file(root: Path) -> Explanation:
    log_dir = build(root)
    (root / "t-0" / "backup.log").write_bytes(b"")
    return asked(log_dir)


def damaged_checkpoint(root: Path) -> Explanation:
    log_dir = build(root)
    (root / checkpoint.CLEANER_OFFSET).write_text("nonsense")
    return asked(log_dir)


def remembered(root: Path) -> Explanation:
    log_dir = build(root)
    digest = digest_of_files(f"{log_dir}/t-0")
    assert digest is not None
    held = SetAside("a wrong checksum", 1, NOW_MS, NOW_MS, digest)
    Path(log_dir, SET_ASIDE).write_bytes(encode(MemoryContents({("t", 0): held})))
    return asked(log_dir)


def damaged(root: Path) -> Explanation:
    log_dir = build(root)
    (root / "t-0" / file_name(4, LOG)).write_bytes(bytes(70))
    return asked(log_dir)


def unreadable(root: Path) -> Explanation:
    """A link, which is not followed, in place of the directory of an earlier partition."""
    log_dir = build(root)
    (root / "t-0" / file_name(4, LOG)).rename(root / "elsewhere")
    (root / "t-0").rename(root / "kept")
    (root / "t-0").symlink_to(root / "kept")
    return asked(log_dir)


def of_another_user(root: Path) -> Explanation:
    """Asked by a user who may not give files to their owner, as only root may."""
    log_dir = build(root)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "geteuid", lambda: 1)
        patches.setattr(LocalFiles, "may_give", staticmethod(lambda *_: False))
        return asked(log_dir)


def too_large(root: Path) -> Explanation:
    log_dir = build(root)
    os.truncate(root / "t-0" / file_name(0, LOG), 2**31)
    return asked(log_dir)


CASES: dict[ReasonCode, tuple[Callable[[Path], Explanation], str, str]] = {
    ReasonCode.UNKNOWN_POLICY: (no_policy, "cleanup.policy is not known", "--topic-configs FILE"),
    ReasonCode.NOT_COMPACTED: (not_compacted, "cleanup.policy is delete", "cleanup.policy=compact"),
    ReasonCode.SETTINGS_DISAGREE: (
        settings_disagree,
        "cleanup.policy is compact in --topic-configs, and delete in the topic's own entry",
        "--trust-topic-configs t",
    ),
    ReasonCode.BELOW_RATIO: (
        not_dirty_enough,
        "dirty ratio 0.5000 is not above",
        "compactor run {dir} --include t --set min.cleanable.dirty.ratio=0\n",
    ),
    ReasonCode.MIN_COMPACTION_LAG: (
        too_young,
        "behind min.compaction.lag.ms of 7 days",
        "old enough",
    ),
    ReasonCode.OPEN_TRANSACTION: (
        open_since,
        "producer 7 has one open since offset 0, last written to 0 s ago",
        "compactor log abort {dir} t-0 --producer-id 7 --only-replica",
    ),
    ReasonCode.HIGH_WATERMARK: (
        low_high_watermark,
        "behind the high watermark 1",
        "--under-replicated-partitions",
    ),
    ReasonCode.ACTIVE_SEGMENT: (
        one_segment,
        "only the active segment",
        "compactor log roll {dir} t-0",
    ),
    ReasonCode.NOTHING_NEW: (clean, "cleaned up to offset 4", "Nothing: it is compacted."),
    ReasonCode.EMPTY: (empty, "it has no segment", "Nothing: it is empty."),
    ReasonCode.LOG_MISSING: (
        log_missing,
        "its .log files are gone: replication-offset-checkpoint says that it had records up to "
        "offset 6",
        "before a broker starts here",
    ),
    ReasonCode.LEFT_OUT: (left_out, "among the topics to exclude", "--exclude"),
    ReasonCode.METADATA_LOG: (metadata_log, "the metadata log of KRaft", "Nothing"),
    ReasonCode.TOPIC_DELETED: (deleted_topic, "its topic was deleted", "--no-metadata"),
    ReasonCode.METADATA_DAMAGED: (
        damaged_metadata,
        "may have changed in what cannot be read: the metadata log is read up to offset 2",
        "--topic-configs FILE",
    ),
    ReasonCode.METADATA_CONTRADICTED: (
        metadata_of_another_time,
        "ends at offset 2, and the broker that stopped here registered at offset 7",
        "--no-metadata with --topic-configs FILE",
    ),
    ReasonCode.TOPIC_ID_MISMATCH: (topic_created_anew, "of the same name", "Copy it first"),
    ReasonCode.NO_TOPIC_ID: (no_topic_id, "no partition.metadata", "--no-metadata"),
    ReasonCode.MOVING: (moved, "is being moved", "kafka-reassign-partitions.sh"),
    ReasonCode.CLOCK_BEHIND: (clock_behind, "was written", "timedatectl"),
    ReasonCode.IN_TWO_LOG_DIRS: (two_places, "would not start with both", "log offsets {dir}/1"),
    ReasonCode.CUT_SHORT: (cut_short, "left by a cleaning", "compactor recover {dir}"),
    ReasonCode.FOREIGN_FILE: (foreign_file, "backup.log: ", "out of the log directory"),
    ReasonCode.LOG_DIR_DAMAGED: (
        damaged_checkpoint,
        "{dir}/cleaner-offset-checkpoint",
        "Look at the file",
    ),
    ReasonCode.SET_ASIDE: (remembered, "a wrong checksum", "--retry"),
    ReasonCode.DAMAGED: (damaged, "byte 0", "compactor verify {dir} t-0"),
    ReasonCode.UNREADABLE: (unreadable, "which is not followed", "work as the broker's user"),
    ReasonCode.NO_PERMISSION: (
        of_another_user,
        "cannot give",
        "sudo chown -R --reference={dir} {dir}/t-0",
    ),
    ReasonCode.SEGMENT_TOO_LARGE: (too_large, "has 2147483648 bytes", "another replica"),
}


# what a run says of a log and `explain` cannot: the tests of rounds, plans and turns have them
OF_RUNS = {
    *(ReasonCode.NOT_REVIEWED, ReasonCode.OVER_BUDGET, ReasonCode.NO_ROOM, ReasonCode.FAILED),
    *(
        ReasonCode.UNSUPPORTED_FORMAT,
        ReasonCode.NULL_KEYS,
        ReasonCode.RECORD_TOO_LARGE,
        ReasonCode.CHANGED_MEANWHILE,
    ),
    *(ReasonCode.INPUT_OUTPUT, ReasonCode.NOT_FOUND, ReasonCode.TOO_FEW_OPEN_FILES),
    *(ReasonCode.FAULTY_MACHINE, ReasonCode.NOT_FINISHED),
}
# errors, and of no log
OF_COMMANDS = {ReasonCode.LOG_DIRS_MISSING, ReasonCode.UNFIT_EXECUTOR, ReasonCode.OTHER_CODEC}
PACKAGES = ("planning", "cleaning")  # and cluster_settings: where a log gets its reason


def test_every_reason_of_a_log_is_met_here() -> None:
    root = Path(remedies.__file__).parents[1]
    files = [root / "settings" / "cluster_settings.py"]
    files += [path for package in PACKAGES for path in (root / package).iterdir()]
    named = {
        ReasonCode[name]
        for path in files
        if path.suffix == ".py"
        for name in re.findall(r"\bReasonCode\.([A-Z_]+)", path.read_text(encoding="utf-8"))
    }
    assert CASES.keys() | OF_RUNS == REMEDIES.keys() == named - OF_COMMANDS


@pytest.mark.parametrize("kind", CASES)
def test_a_reason_comes_with_what_to_do(tmp_path: Path, kind: ReasonCode) -> None:
    met, said, helps = CASES[kind]
    found = met(tmp_path)
    where = str(tmp_path)
    assert found.reason_code is kind
    assert found.verdict.startswith(f"{found.topic}-{found.partition} is ")
    assert said.format(dir=where) in found.verdict
    assert found.remedy is not None
    told = "\n".join((found.remedy.words, *found.remedy.commands))
    assert helps.format(dir=where) in told
    assert "{" not in told
    assert "9223372036854775807" not in found.verdict + told
