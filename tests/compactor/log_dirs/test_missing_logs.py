"""A log without .log files, though checkpoints say that it had records: every command says so."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from compactor import api
from compactor.log_dirs.missing_directories import entries_in, gone_from
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown, meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PartitionMetadata, encode_uuid
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import NOW_MS, Shape, build
from tests.compactor.settings.test_cluster_settings import POLICY, cluster, identify, registration
from tests.storage.log.test_cluster_metadata import (
    A,
    B,
    batches,
    config,
    log,
    partition,
    removal,
    topic,
)
from tests.support.local_command import Ended, run_command, use_local_rounds

pytestmark = pytest.mark.usefixtures("without_spark")

COMMANDS = (
    ("verify", "{data}"),
    ("doctor", "{data}"),
    ("recover", "{data}"),
    ("plan", "{data}", "--any-clock"),
    ("run", "{data}", "--any-clock", "--dry-run"),
    ("run", "{data}", "--any-clock"),
    ("explain", "{data}", "t-0"),
)
BEGINNINGS = {  # of those that say nothing before they name the log
    "verify": "/",
    "recover": "t-1 ",
    "explain": "t-1 is set aside",
    "doctor": "Records are gone: ",
}
POLICIES = ("compact", "delete")


def without_logs(root: Path, policy: str = "compact") -> Path:
    """A log directory with logs t-0, whose .log files are gone, and u-0."""
    data = root / "data"
    build(data, Shape("t"), Shape("u"))
    for path in (data / "t-0").glob("*.log"):
        path.unlink()
    entries = {("t", 0): 6, ("u", 0): 6}
    checkpoint.write(str(data / checkpoint.RECOVERY_POINT), entries)
    checkpoint.write(str(data / checkpoint.REPLICATION), entries)
    write_policies(root, t=policy, u="delete")
    return data


def told_gone(found: Ended) -> str:
    """All that was said, as one line, where records are gone: nobody is sent to a broker."""
    shown = " ".join((found.out + found.error).split())
    assert found.code == 4, shown
    assert "tart the broker" not in shown
    assert "all sound" not in shown
    return shown


def write_policies(root: Path, **policies: str) -> None:
    topics = {topic: {"cleanup.policy": policy} for topic, policy in policies.items()}
    (root / "topics.json").write_text(json.dumps(topics))


def ended(data: Path, *words: str) -> Ended:
    given = [word.format(data=data) for word in words]
    if words[0] not in ("verify", "doctor"):
        given += ["--topic-configs", str(data.parent / "topics.json")]
    return run_command(*given)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_that_the_records_are_gone(
    tmp_path: Path, words: tuple[str, ...], policy: str
) -> None:
    shown = told_gone(ended(without_logs(tmp_path, policy), *words))
    assert "its .log files are gone: replication-offset-checkpoint says that it had" in shown
    assert "records up to offset 6" in shown


@pytest.mark.parametrize("option", [(), ("--as-kafka",)], ids=("", "as-kafka"))
def test_recovery_after_an_unclean_shutdown_does_not_begin_the_log_again(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    data = without_logs(tmp_path)
    (data / clean_shutdown.CLEAN_SHUTDOWN).unlink(missing_ok=True)
    before = sorted(path.name for path in (data / "t-0").iterdir())
    found = ended(data, "recover", "{data}", *option)
    assert found.code == 4
    assert "its .log files are gone" in " ".join(found.out.split())
    assert sorted(path.name for path in (data / "t-0").iterdir()) == before


@pytest.mark.parametrize(
    ("name", "ends", "starts"),
    [
        (checkpoint.REPLICATION, 0, 0),  # a log that never had a record
        (checkpoint.REPLICATION, 6, 6),  # all of them were deleted
    ],
)
@pytest.mark.parametrize("words", COMMANDS[:2], ids=" ".join)
def test_a_log_that_had_no_records_is_sound(
    tmp_path: Path, words: tuple[str, ...], name: str, ends: int, starts: int
) -> None:
    data = without_logs(tmp_path)
    (data / checkpoint.RECOVERY_POINT).unlink()
    checkpoint.write(str(data / name), {("t", 0): ends, ("u", 0): 6})
    checkpoint.write(str(data / checkpoint.LOG_START), {("t", 0): starts})
    assert ".log files are gone" not in ended(data, *words).out


@pytest.mark.parametrize("topic", ["t\0", "../u", "t\x1b", "t" * 250])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_name_that_no_log_can_have_is_none_that_is_gone(
    tmp_path: Path, words: tuple[str, ...], topic: str
) -> None:
    """As one damaged byte of a checkpoint leaves it: a broker passes over such a line."""
    data = tmp_path / "data"
    build(data, Shape("t"))
    write_policies(tmp_path, t="compact")
    path = data / checkpoint.REPLICATION
    checkpoint.write(str(path), checkpoint.read(str(path)) | {(topic, 0): 6})
    found = ended(data, *words)
    assert found.code == (4 if words[0] == "verify" else 0), found
    assert "not in this directory" not in found.out + found.error
    assert (f"{path}, byte 0: no log can have the name" in found.out) is (words[0] == "verify")


def test_a_log_that_is_left_out_is_not_looked_for(tmp_path: Path) -> None:
    data = without_logs(tmp_path)
    found = ended(data, "run", "{data}", "--any-clock", "--include", "u")
    assert found.code == 0


def without_directory(tmp_path: Path, *more: bytes) -> Path:
    """A log directory with t-0; the metadata log places t-1 here, too, which had 6 records."""
    values = topic("t", A), partition(0, A), partition(1, A), POLICY
    data = cluster(tmp_path, *values, *more)
    identify(data, 1, B)
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6, ("t", 1): 6})
    return data


def missing(data: Path, **rules: Any) -> list[tuple[str, int]]:
    plan = api.plan([str(data)], api.Rules(as_of=NOW_MS, any_clock=True, **rules)).round_plan
    found = [log for log in plan.not_cleaned if log.reason_code == "log-missing"]
    assert all(log.status == "set-aside" for log in found)
    assert all("its directory is gone" in (log.reason or "") for log in found)
    return [(log.topic, log.partition) for log in found]


def move_metadata_log_beside(data: Path) -> Path:
    """Give the broker a first log directory, which has its metadata log and no other."""
    first = data.parent / "first"
    first.mkdir()
    identify(first, 1, A)
    (data / METADATA_DIR).rename(first / METADATA_DIR)
    checkpoint.write(str(first / checkpoint.REPLICATION), {})
    clean_shutdown.write(str(first))
    return first


OF_T_1 = [*COMMANDS[:6], ("explain", "{data}", "t-1")]


@pytest.mark.parametrize("where", ["here", "given", "beside"])
@pytest.mark.parametrize("words", OF_T_1, ids=" ".join)
def test_a_directory_that_the_metadata_log_places_here_is_missed(
    tmp_path: Path, words: tuple[str, ...], where: str
) -> None:
    """where: the metadata log is; every command looks for one beside."""
    data = without_directory(tmp_path / "broker")
    given = [word.format(data=data) for word in words]
    if where != "here":
        move_metadata_log_beside(data)
    if where == "given" and words[0] != "verify":  # which takes one directory, and looks beside it
        given.insert(1, str(data.parent / "first"))
    found = run_command(*given)
    shown = told_gone(found)
    assert "its directory is gone: replication-offset-checkpoint says that it had" in shown
    assert "A run can be done" not in shown
    assert found.out.startswith(BEGINNINGS.get(words[0], "Records are gone: t-1. Start no broker"))
    assert not (data / "t-1").exists()


NAMING = (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT, checkpoint.CLEANER_OFFSET)


def silence(data: Path, how: str) -> None:
    """Leave no checkpoint that would name each log."""
    for name in NAMING:
        (data / name).unlink(missing_ok=True)
    if how == "empty":
        (data / checkpoint.REPLICATION).write_bytes(b"")
    if how == "all is gone":  # a new disk, for which the old meta.properties was written again
        shutil.rmtree(data / "t-0")
        (data / clean_shutdown.CLEAN_SHUTDOWN).unlink()


@pytest.mark.parametrize("how", ["none", "empty", "all is gone"])
@pytest.mark.parametrize("words", OF_T_1, ids=" ".join)
def test_without_checkpoints_the_metadata_log_alone_says_that_a_log_is_gone(
    tmp_path: Path, words: tuple[str, ...], how: str
) -> None:
    data = without_directory(tmp_path / "broker")
    first = move_metadata_log_beside(data)
    silence(data, how)
    given = [word.format(data=data) for word in words]
    if words[0] != "verify":
        given.insert(1, str(first))
    if words[0] in ("plan", "run"):
        given.append("--assume-fully-replicated")
    if words[0] == "run":
        given.append("--recover-first")
    found = run_command(*given)
    shown = told_gone(found)
    assert "its directory is gone: the metadata log places it here, and no checkpoint" in shown
    assert not (data / "t-1").exists()


@pytest.mark.parametrize("option", [(), ("--as-kafka",)], ids=("", "as-kafka"))
def test_recovery_leaves_the_proof_that_a_log_is_gone(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    data = without_directory(tmp_path)
    silence(data, "all is gone")
    for _ in range(2):
        assert run_command("recover", data, *option).code == 4
        assert run_command("verify", data).code == 4


def test_a_copy_of_compacted_topics_lacks_nothing_also_without_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    values = topic("t", A), partition(0, A), POLICY, topic("u", D), partition(0, D)
    data = cluster(tmp_path, *values, config("cleanup.policy", "delete", "u"))
    shutil.copytree(data / "t-0", data / "u-0")
    partition_metadata.write(str(data / "u-0" / "partition.metadata"), PartitionMetadata(0, D))
    identify(data, 1, B)
    silence(data, "none")
    copy = tmp_path / "copy"
    words = ("--output", copy, "--compacted-only", "--any-clock", "--assume-fully-replicated")
    made = run_command("run", data, *words)
    assert made.code == 0, made
    assert not (copy / "u-0").exists()
    looked = run_command("verify", copy)
    assert looked.code == 0, looked
    shutil.rmtree(copy / "t-0")
    assert run_command("verify", copy).code == 4


def test_a_checkpoint_that_lists_logs_says_that_another_was_not_made_yet(tmp_path: Path) -> None:
    data = without_directory(tmp_path)
    silence(data, "none")
    for entries in ({("t", 0): 6}, {}):
        checkpoint.write(str(data / checkpoint.REPLICATION), entries)
        assert not missing(data)
    silence(data, "none")
    assert missing(data, assume_fully_replicated=True) == [("t", 1)]
    checkpoint.write(str(data / checkpoint.RECOVERY_POINT), {("t", 0): 6})
    assert not missing(data, assume_fully_replicated=True)


@pytest.mark.parametrize("own_id", [B, None])
def test_a_metadata_log_that_tells_no_directory_places_what_the_checkpoints_name(
    tmp_path: Path, own_id: UUID | None
) -> None:
    """Brokers before 3.7 tell none, and later ones for as long as the old format is in use."""
    untold = partition(1, A).replace(B.bytes, bytes(16))
    data = cluster(tmp_path, topic("t", A), partition(0, A), untold, POLICY)
    text = None if own_id is None else encode_uuid(own_id)
    meta_properties.write(str(data), MetaProperties(1, "cluster", 1, text))
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6, ("t", 1): 6})
    assert missing(data) == [("t", 1)]
    meta_properties.write(str(data), MetaProperties(1, "cluster", 2, text))
    assert not missing(data)  # the replica is broker 1's
    meta_properties.write(str(data), MetaProperties(1, "cluster", 1, text))
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6})
    assert not missing(data)
    silence(data, "none")
    assert not missing(data, assume_fully_replicated=True)  # nobody says where it was


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_report_begins_with_it(tmp_path: Path, command: str) -> None:
    data = without_directory(tmp_path)
    words = [command, data, "--any-clock", *(["--dry-run"] if command == "run" else [])]
    page = tmp_path / "report.html"
    found = run_command(*words, "--format", "json", "--report", page)
    logs = json.loads(found.out)["logs" if command == "run" else "not_taken"]
    assert (logs[0]["topic"], logs[0]["partition"]) == ("t", 1)
    assert logs[0]["reason_code"] == "log-missing"
    assert "Records are gone: t-1. Start no broker here" in page.read_text()


def test_verify_of_the_missing_log_alone_says_so(tmp_path: Path) -> None:
    found = run_command("verify", without_directory(tmp_path), "t-1")
    assert found.code == 4
    assert "its directory is gone" in found.out


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[1], COMMANDS[2]], ids=" ".join)
@pytest.mark.parametrize("is_copy", [False, True])
def test_a_copy_of_chosen_topics_is_sound_with_one_line(
    tmp_path: Path, words: tuple[str, ...], is_copy: bool
) -> None:
    """is_copy: the original, with its metadata log, stands beside it, whole."""
    data = without_directory(tmp_path / "broker")
    (data / METADATA_DIR).rename(tmp_path / "metadata")
    if is_copy:
        shutil.copytree(data, data.parent / "original")
        (tmp_path / "metadata").rename(data.parent / "original" / METADATA_DIR)
        (data.parent / "original" / "t-1").mkdir()
    found = run_command(*(word.format(data=data) for word in words))
    shown = " ".join((found.out + found.error).split())
    assert found.code == 0, shown
    assert "its directory is gone" not in shown
    line = "ot in this directory, though its checkpoints name them: 1 log (t-1). That is so of"
    assert (line in shown) is not is_copy
    assert is_copy or "tart the broker" not in shown


def test_a_copy_beside_does_not_stand_in_for_what_is_gone(tmp_path: Path) -> None:
    data = without_directory(tmp_path / "broker")
    shutil.copytree(data, data.parent / "backup")
    (data.parent / "backup" / "t-1").mkdir()
    assert run_command("verify", data).code == 4


C, D = UUID(int=7 << 64), UUID(int=8 << 64)


def first_beside(data: Path, name: str, own_id: UUID, *registered: UUID) -> Path:
    """A directory of the same broker with a metadata log, by which t-1 is in directory B."""
    first = data.parent / name
    first.mkdir(parents=True)
    identify(first, 1, own_id)
    (first / METADATA_DIR).mkdir()
    values = topic("t", A), partition(0, A), partition(1, A), POLICY, registration(1, *registered)
    log(first / METADATA_DIR, 0, batches(0, *values))
    return first


@pytest.mark.parametrize("id_", [B, C])
def test_a_metadata_log_beside_is_believed_only_of_directories_that_it_has(
    tmp_path: Path, id_: UUID
) -> None:
    """C was formatted since for the same broker of the same cluster: that log cannot know it."""
    data = without_directory(tmp_path / "broker")
    shutil.rmtree(data / METADATA_DIR)
    first_beside(data, "before", A, A, B)
    identify(data, 1, id_)
    found = api.verify([str(data)])
    gone = [f for f in found.findings if f.reason_code == "log-missing"]
    assert [Path(finding.path).name for finding in gone] == (["t-1"] if id_ == B else [])
    assert any("1 log (t-1)" in notice for notice in found.notices) == (id_ == C)


def test_of_two_metadata_logs_beside_that_one_counts_that_has_the_directory(tmp_path: Path) -> None:
    data = without_directory(tmp_path / "broker")
    shutil.rmtree(data / METADATA_DIR)
    first_beside(data, "before", C, C, D)
    first_beside(data, "today", A, A, B)
    found = api.verify([str(data)])
    assert [Path(f.path).name for f in found.findings if f.reason_code == "log-missing"] == ["t-1"]


def test_a_directory_of_another_time_beside_does_not_stand_in_for_what_is_gone(
    tmp_path: Path,
) -> None:
    data = without_directory(tmp_path / "broker")
    shutil.rmtree(data / METADATA_DIR)
    first_beside(data, "today", A, A, B)
    before = data.parent / "before"  # D is formatted again: it is registered no more
    (before / "t-1").mkdir(parents=True)
    identify(before, 1, D)
    found = api.verify([str(data)])
    assert [Path(f.path).name for f in found.findings if f.reason_code == "log-missing"] == ["t-1"]


@pytest.mark.parametrize("command", ["verify", "recover"])
@pytest.mark.parametrize(
    ("id_", "has_log"), [(C, False), (None, False), (D, False), (C, True)], ids=str
)
def test_a_new_disk_in_the_place_of_one_that_had_logs_is_no_sound_one(
    tmp_path: Path, command: str, id_: UUID | None, has_log: bool
) -> None:
    """The broker is registered with A, B and D; has_log: another of its directories has it now.

    A run is refused: it was not given all log directories.
    """
    first = first_beside(tmp_path / "first", "data", A, A, B, D)
    disk = tmp_path / "disk"
    disk.mkdir()
    text = None if id_ is None else encode_uuid(id_)
    meta_properties.write(str(disk), MetaProperties(1, "cluster", 1, text))
    build(first, *((Shape("t", 0), Shape("t", 1)) if has_log else (Shape("u"),)))
    identify(first, 1, A)
    for path in first.glob("t-*"):
        partition_metadata.write(str(path / "partition.metadata"), PartitionMetadata(0, A))
    found = run_command(command, first, disk)
    shown = " ".join((found.out + found.error).split())
    is_missed = id_ != D and not has_log
    assert found.code == (4 if is_missed else 0), shown
    assert ("a broker that starts here begins it again" in shown) == is_missed
    assert ("all sound" in shown or "ext: start the broker" in shown) != is_missed
    assert not any(disk.glob("t-*"))


@pytest.mark.parametrize(
    "words",
    [
        ("log", "offsets", "{data}", "t-0"),
        ("log", "read", "{data}", "t-0"),
        ("log", "roll", "{data}", "t-0"),
        ("log", "roll", "{data}", "t-0", "--dry-run"),
        ("log", "truncate", "{data}", "t-0", "--to", "3", "--only-replica"),
        ("log", "delete-records", "{data}", "t-0", "--before", "3", "--only-replica"),
        ("log", "append", "{data}", "t-0", "--only-replica", "--records", "{data}/../new.json"),
        ("log", "abort", "{data}", "t-0", "--producer-id", "7", "--only-replica"),
    ],
    ids=" ".join,
)
def test_no_command_begins_a_log_again_whose_records_are_gone(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    data = without_logs(tmp_path)
    (tmp_path / "new.json").write_text('{"key": "k", "value": "v"}\n')
    before = {path: path.read_bytes() for path in (data / "t-0").iterdir()}
    found = run_command(*(word.format(data=data) for word in words))
    shown = " ".join((found.out + found.error).split())
    assert found.code == 3, shown
    assert "its .log files are gone: replication-offset-checkpoint says that it had" in shown
    assert {path: path.read_bytes() for path in (data / "t-0").iterdir()} == before


def test_a_directory_that_need_not_be_here_is_not_missed(tmp_path: Path) -> None:
    data = without_directory(tmp_path)
    assert missing(data) == [("t", 1)]
    identify(data, 1, A)  # the metadata log has the replica in directory B
    assert not missing(data)
    identify(data, 2, B)  # and of broker 1
    assert not missing(data)
    identify(data, 1, B)
    stray = data / "t-1.0123456789abcdef0123456789abcdef-stray"
    stray.mkdir()
    assert not missing(data)
    stray.rmdir()
    (data / "t-1.0123456789abcdef0123456789abcdef-future").mkdir()  # seen with a broker
    assert missing(data, include="t") == [("t", 1)]
    assert not missing(data, exclude="t")
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6, ("t", 1): 0})
    assert not missing(data)


def test_a_directory_of_a_deleted_topic_is_not_missed(tmp_path: Path) -> None:
    assert not missing(without_directory(tmp_path, removal(A)))


def test_a_run_leaves_what_is_left_of_such_a_log_byte_for_byte(tmp_path: Path) -> None:
    data = without_logs(tmp_path)
    before = {path.name: path.read_bytes() for path in (data / "t-0").iterdir()}
    assert any(name.endswith(".index") for name in before)
    ended(data, "run", "{data}", "--any-clock")
    assert {path.name: path.read_bytes() for path in (data / "t-0").iterdir()} == before


CUT_COMMANDS = (*COMMANDS[:6], ("explain", "{data}", "t-0"))


@pytest.mark.parametrize("name", [checkpoint.RECOVERY_POINT, checkpoint.REPLICATION])
@pytest.mark.parametrize("files", [".log", ".*"])
@pytest.mark.parametrize("words", CUT_COMMANDS, ids=" ".join)
def test_a_log_whose_end_is_gone_is_left_as_it_is_by_every_command(
    tmp_path: Path, words: tuple[str, ...], files: str, name: str
) -> None:
    """Its last segment, with its indexes or without; a broker's stop writes both checkpoints."""
    data = tmp_path / "data"
    build(data, Shape("t"), Shape("u"))
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(data / of_file), {("t", 0): 6 if of_file == name else 4, ("u", 0): 6})
    write_policies(tmp_path, t="compact", u="delete")
    last = sorted((data / "t-0").glob("*.log"))[-1]
    for path in (data / "t-0").glob(last.stem + files):
        path.unlink()
    before = {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log")}
    shown = told_gone(ended(data, *words))
    assert f"and {name} has 6 for it: records are gone from its end" in shown
    assert {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log")} == before


def test_after_an_unclean_shutdown_a_log_may_end_before_its_high_watermark(tmp_path: Path) -> None:
    """A power cut takes what was not flushed; a broker that starts cuts the high watermark."""
    data = tmp_path / "data"
    build(data, Shape("t"))
    (data / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 7})
    write_policies(tmp_path, t="compact")
    assert ended(data, "plan", "{data}", "--any-clock").code == 0


@pytest.mark.parametrize("words", [*CUT_COMMANDS[3:], CUT_COMMANDS[2]], ids=" ".join)
def test_a_log_whose_files_are_empty_is_left_as_it_is(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """All of them are there, and none holds anything, as after a copy on a full disk."""
    data = without_logs(tmp_path)
    for path in (data / "t-0").glob("0*"):
        path.write_bytes(b"")
    (data / "t-0" / f"{0:020}.log").write_bytes(b"")
    shown = told_gone(ended(data, *words))
    assert "has 6 for it: records are gone from its end" in shown


@pytest.mark.parametrize("is_placed", [True, False])
def test_a_log_that_a_broker_makes_meanwhile_is_not_missed(tmp_path: Path, is_placed: bool) -> None:
    """The names are listed first, and the checkpoints of a broker at work are read behind that."""
    data = without_directory(tmp_path)
    own = entries_in(str(data), LOCAL)
    found = gone_from(own, (), LOCAL, is_metadata_ignored=not is_placed)
    assert bool(found.logs) == is_placed
    assert bool(found.unplaced) != is_placed
    (data / "t-1").mkdir()
    found = gone_from(own, (), LOCAL, is_metadata_ignored=not is_placed)
    assert not found.logs
    assert not found.unplaced


@pytest.mark.parametrize("what", ["a file", "a link to nowhere"])
@pytest.mark.parametrize("words", OF_T_1, ids=" ".join)
def test_what_only_has_the_name_of_a_log_does_not_stand_in_for_it(
    tmp_path: Path, words: tuple[str, ...], what: str
) -> None:
    data = without_directory(tmp_path)
    if what == "a file":
        (data / "t-1").write_bytes(b"")
    else:
        (data / "t-1").symlink_to(tmp_path / "nowhere")
    shown = told_gone(run_command(*(word.format(data=data) for word in words)))
    assert "its directory is gone" in shown or "symbolic link, which is not followed" in shown


@pytest.mark.parametrize("words", OF_T_1, ids=" ".join)
@pytest.mark.parametrize("name", [checkpoint.RECOVERY_POINT, checkpoint.CLEANER_OFFSET])
def test_each_checkpoint_says_that_a_log_was_there(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    data = without_directory(tmp_path)
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6})
    checkpoint.write(str(data / name), {("t", 0): 6, ("t", 1): 6})
    found = run_command(*(word.format(data=data) for word in words))
    assert found.code == 4
    assert f"its directory is gone: {name} says" in " ".join(found.out.split())


def beheaded(root: Path, first_kept: int, files: str) -> Path:
    """A log directory with t-0, three segments, of which the first are gone, and u-0."""
    data = root / "data"
    build(data, Shape("t"), Shape("u"))
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(data / of_file), {("t", 0): 6, ("u", 0): 6})
    for path in (data / "t-0").glob(f"0*{files}"):
        if int(path.stem) < first_kept:
            path.unlink()
    write_policies(root, t="compact", u="delete")
    return data


@pytest.mark.parametrize("files", [".log", ".*"])
@pytest.mark.parametrize("first_kept", [2, 4])
@pytest.mark.parametrize("words", CUT_COMMANDS, ids=" ".join)
def test_a_log_whose_beginning_is_gone_is_left_as_it_is_by_every_command(
    tmp_path: Path, words: tuple[str, ...], first_kept: int, files: str
) -> None:
    """Its leader epochs begin at offset 0, and no checkpoint says that it begins later (F-13.6)."""
    data = beheaded(tmp_path, first_kept, files)
    before = {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log")}
    shown = told_gone(ended(data, *words))
    assert f"it begins at offset {first_kept}, and leader-epoch-checkpoint has epoch 0" in shown
    assert {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log")} == before


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("words", CUT_COMMANDS, ids=" ".join)
def test_a_beginning_that_has_the_names_of_deleted_files_stays(
    tmp_path: Path, words: tuple[str, ...], is_clean: bool
) -> None:
    """A broker that removes segments moves the epochs first: these may be the last copy."""
    data = beheaded(tmp_path, 4, ".nothing")
    for path in list((data / "t-0").iterdir()):
        if path.name.startswith((f"{0:020}", f"{2:020}")):
            path.rename(f"{path}.deleted")
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    before = {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log*")}
    assert len([name for name in before if name.endswith(".log.deleted")]) == 2
    found = ended(data, *words)
    shown = " ".join((found.out + found.error).split())
    assert found.code, shown
    assert "tart the broker" not in shown
    if found.code == 4:
        assert "its name was without .deleted" in shown
    assert {path.name: path.read_bytes() for path in (data / "t-0").glob("*.log*")} == before


@pytest.mark.parametrize("epochs", [b"", b"0\n0\n", b"0\n1\n0 2\n", b"0\n1\n3 5\n", None])
def test_a_log_whose_epochs_begin_no_earlier_may_begin_anywhere(
    tmp_path: Path, epochs: bytes | None
) -> None:
    """One of old batches has none, or has them from the upgrade on."""
    data = beheaded(tmp_path, 2, ".*")
    path = data / "t-0" / "leader-epoch-checkpoint"
    path.unlink() if epochs is None else path.write_bytes(epochs)
    assert ended(data, "plan", "{data}", "--any-clock").code == 0


def test_a_log_with_an_entry_of_its_start_may_be_tiered(tmp_path: Path) -> None:
    """A broker writes the start of a tiered log always, and its first segments are elsewhere."""
    data = beheaded(tmp_path, 2, ".*")
    checkpoint.write(str(data / checkpoint.LOG_START), {("t", 0): 0})
    assert ended(data, "plan", "{data}", "--any-clock").code == 0


def test_a_run_that_removes_the_beginning_of_a_log_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention of a run, twice; and records deleted by command, up to the middle of a segment."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    data = tmp_path / "data"
    build(data, Shape("t", segments=6))
    settings = {"cleanup.policy": "compact,delete", "retention.bytes": "79", "retention.ms": "-1"}
    (tmp_path / "topics.json").write_text(json.dumps({"t": settings}))
    run = ("run", "{data}", "--any-clock", "--assume-fully-replicated")
    assert ended(data, *run).code == 0
    first = min((data / "t-0").glob("*.log"))
    assert int(first.stem) > 0
    given = ("--only-replica", "--yes", "--before", str(int(first.stem) + 1))
    assert ended(data, "log", "delete-records", "{data}", "t-0", *given).code == 0
    for words in (run, ("plan", "{data}", "--any-clock"), ("verify", "{data}"), run):
        found = ended(data, *words)
        assert (found.code, "are gone from its beginning" in found.out) == (0, False), found


def test_a_log_that_is_known_to_be_whole_may_end_before_its_checkpoints(tmp_path: Path) -> None:
    """A log manager says so of its own: it has cut one off inside of a batch (a script of 400)."""
    data = tmp_path / "data"
    build(data, Shape("t"))
    for of_file in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(data / of_file), {("t", 0): 7})
    rules = api.Rules(topic_configs={"t": {"cleanup.policy": "compact"}}, any_clock=True)
    (log,) = api.plan([str(data)], rules).round_plan.not_cleaned
    assert log.status is api.LogStatus.SET_ASIDE
    assert not api.plan([str(data)], replace(rules, known_whole=True)).round_plan.not_cleaned
