"""`run` with `output`: a copy like an in-place run's result, and an original as it was."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from compactor import api
from compactor.copying.contents import contents_of
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER, TEXT_FILE, UNFINISHED
from compactor.outcome.exit_codes import ExitCode, ending_of_report
from storage.file_names import DELETE_DIR, FUTURE_DIR, LOG, STRAY_DIR, file_name, special_dir
from storage.files import cloning
from storage.files.local import LOCAL, LocalFiles
from storage.formats import checkpoint, clean_shutdown
from tests.compactor.log_dirs.test_locked_log_dirs import held
from tests.support.file_states import state_of
from tests.support.made_log import keyed, make_partition

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
RULES = api.Rules(topic_configs={"orders": COMPACTED}, no_metadata=True)
ENDS = {("orders", 0): 13, ("orders", 1): 13, ("events", 0): 8}
FUTURE = special_dir("events", 0, FUTURE_DIR)
STRAY = special_dir("gone", 3, STRAY_DIR)
METADATA = "__cluster_metadata-0"


def log_dir_in(root: Path) -> Path:
    """Two logs to clean, one of another policy, and what else a broker and we leave."""
    logs = root / "logs"
    for name in ("orders-0", "orders-1"):
        segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "abcd")]}
        make_partition(logs, {**segments, 12: [keyed(12, "a")]}, name)
    make_partition(logs, {0: [keyed(0, "abab")], 4: [keyed(4, "abab")]}, "events-0")
    for name in (METADATA, FUTURE, STRAY, special_dir("gone", 1, DELETE_DIR)):
        (logs / name).mkdir()
        (logs / name / file_name(0, LOG)).write_bytes(name.encode())
    (logs / "orders-0" / f"{file_name(0, LOG)}.compactor-1-2").write_bytes(b"staged")
    (logs / "orders-0" / f"{file_name(0, LOG)}.deleted").write_bytes(b"deleted")
    (logs / ".lock").touch()
    (logs / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    for name in (checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
        checkpoint.write(str(logs / name), ENDS)
    checkpoint.write(str(logs / checkpoint.CLEANER_OFFSET), {("orders", 1): 4})
    return logs


def bytes_in(path: Path) -> dict[str, bytes]:
    return {name: state.data for name, state in state_of(path).items()}


def run(logs: Path, *copies: Path, **options: bool) -> api.CleaningReport:
    return api.run([str(logs)], RULES, options_with(*map(str, copies), **options))


def options_with(*output: str, **more: bool) -> api.RunOptions:
    return replace(api.RunOptions(in_process=True, output=output), **more)  # type: ignore[arg-type]


def in_place_of(logs: Path, **options: bool) -> dict[str, bytes]:
    """What an in-place run leaves, but for what is in no copy."""
    shutil.copytree(logs, logs.parent / "in-place")
    run(logs.parent / "in-place", **options)
    left = bytes_in(logs.parent / "in-place")
    return {n: d for n, d in left.items() if n != ".lock" and DELETE_DIR not in n}


def test_the_copy_has_the_bytes_of_an_in_place_run_and_the_original_is_as_it_was(
    tmp_path: Path,
) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    before = state_of(logs)
    report = run(logs, copy)
    assert state_of(logs) == before
    found = bytes_in(copy)
    manifest = json.loads(found.pop(MANIFEST))
    assert found == in_place_of(logs)
    assert {FUTURE, STRAY, METADATA} <= {entry.name for entry in copy.iterdir()}
    assert not (copy / UNFINISHED).exists()
    assert not (copy / NO_BROKER).exists()
    assert [file["name"] for file in manifest["files"]] == sorted(found)
    assert [file["size_bytes"] for file in manifest["files"]] == [
        len(found[name]) for name in sorted(found)
    ]
    assert manifest["may_broker_start"] is True
    assert (manifest["source"], manifest["missing"]) == (str(logs), {})
    [told] = report.copies
    assert (told.source, told.path) == (str(logs), str(copy))
    assert told.manifest == str(copy / MANIFEST)
    assert ending_of_report(report).exit_code is ExitCode.OK


def test_what_the_round_does_not_touch_keeps_time_mode_and_holes(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    untouched = Path("events-0", file_name(4, LOG))
    (logs / untouched).chmod(0o640)
    (logs / "events-0").chmod(0o750)
    index = logs / "orders-0" / file_name(12, ".index")
    os.truncate(index, 10 << 20)
    run(logs, copy)
    assert (copy / untouched).stat().st_mtime_ns == (logs / untouched).stat().st_mtime_ns
    assert (copy / untouched).stat().st_mode == (logs / untouched).stat().st_mode
    assert (copy / "events-0").stat().st_mode == (logs / "events-0").stat().st_mode
    copied = (copy / "orders-0" / index.name).stat()
    assert copied.st_size == 10 << 20
    assert copied.st_blocks * 512 < 1 << 20


def test_what_an_unclean_shutdown_left_is_recovered_in_the_copy(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    (logs / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    checkpoint.write(str(logs / checkpoint.RECOVERY_POINT), {("orders", 0): 8})
    shutil.rmtree(logs / FUTURE)
    with (logs / "orders-0" / file_name(12, LOG)).open("ab") as out:
        out.write(b"torn")
    before = state_of(logs)
    run(logs, copy)
    assert state_of(logs) == before
    found = bytes_in(copy)
    del found[MANIFEST]
    assert found == in_place_of(logs, recover_first=True)
    assert not found[f"orders-0/{file_name(12, LOG)}"].endswith(b"torn")


def appending(path: Path) -> Callable[[api.Progress], None]:
    """A broker that appends as soon as the copying has begun."""

    def append(progress: api.Progress) -> None:
        if progress.stage == "copy" and progress.event is api.Event.STAGE:
            with path.open("ab") as out:
                out.write(b"more")

    return append


def test_a_log_that_changes_meanwhile_is_not_in_the_copy_and_that_is_told(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    options = options_with(str(copy))
    report = api.run([str(logs)], RULES, options, appending(logs / "orders-1" / file_name(12, LOG)))
    by_name = {(log.topic, log.partition): log for log in report.logs}
    assert by_name["orders", 0].status is api.LogStatus.CLEANED
    assert by_name["orders", 1].status is api.LogStatus.FAILED
    assert "changed while it was copied" in (by_name["orders", 1].reason or "")
    assert ending_of_report(report).exit_code is ExitCode.PARTIAL
    assert not (copy / "orders-1").exists()
    for name in (checkpoint.CLEANER_OFFSET, checkpoint.REPLICATION, checkpoint.RECOVERY_POINT):
        assert ("orders", 1) not in checkpoint.read(str(copy / name))
    assert checkpoint.read(str(copy / checkpoint.REPLICATION))["events", 0] == 8
    manifest = json.loads((copy / MANIFEST).read_text())
    assert manifest["may_broker_start"] is False
    assert [*manifest["missing"]] == ["orders-1"]
    assert (copy / NO_BROKER).is_dir()  # which ends a broker that starts


class StoppedError(Exception):
    """A run is cut short here."""


@pytest.mark.parametrize("stage", ["copy", "scan", "swap", "checksums"])
def test_a_run_that_is_cut_short_leaves_no_manifest_and_the_next_one_says_what_to_do(
    tmp_path: Path, stage: str
) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    before = state_of(logs)

    def stop(progress: api.Progress) -> None:
        if progress.stage == stage:
            raise StoppedError

    options = options_with(str(copy))
    with pytest.raises(StoppedError) as stopped:
        api.run([str(logs)], RULES, options, stop)
    told = api.what_was_changed(stopped.value) or ""
    assert "The original is as it was" in told
    assert str(copy) in told
    assert state_of(logs) == before
    assert not (copy / MANIFEST).exists()
    assert (copy / UNFINISHED).is_dir()
    with pytest.raises(api.RefusedError, match=rf"never finished.*rm -r {copy}"):
        run(logs, copy)
    shutil.rmtree(copy)
    assert run(logs, copy).copies[0].manifest is not None


def test_where_the_manifest_does_not_fit_the_copy_stays_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker must not start on it, nor anybody take it for whole."""
    logs, copy, seen = log_dir_in(tmp_path), tmp_path / "copy", []
    replace_file = LOCAL.replace_file

    def full(path: str, data: bytes) -> None:
        if os.path.basename(path) == MANIFEST:
            seen.append((copy / UNFINISHED / TEXT_FILE).is_file())
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        replace_file(path, data)

    monkeypatch.setattr(LocalFiles, "replace_file", staticmethod(full))
    with pytest.raises(OSError, match="No space left"):
        run(logs, copy)
    assert seen == [True]
    assert (copy / UNFINISHED).is_dir()
    assert not (copy / MANIFEST).exists()


def without_empty_directories(source: Path, target: Path) -> Path:
    """What tools for object stores, and git, bring over."""
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path.relative_to(source))
    return target


@pytest.mark.parametrize("without", ["nothing", NO_BROKER, MANIFEST])
def test_a_mark_outlives_a_tool_that_leaves_empty_directories_out(
    tmp_path: Path, without: str
) -> None:
    """The manifest is a mark as well, and each of the two is enough."""
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    run(logs, copy, link=True)
    moved = without_empty_directories(copy, tmp_path / "moved")
    if without == NO_BROKER:
        shutil.rmtree(moved / NO_BROKER)
    elif without == MANIFEST:
        (moved / MANIFEST).unlink()
    before = state_of(moved)
    with pytest.raises(api.RefusedError, match="a copy that nobody is to change"):
        api.run([str(moved)], RULES, api.RunOptions(in_process=True))
    assert {name: s for name, s in state_of(moved).items() if name != ".lock"} == before


def test_a_manifest_says_nothing_of_a_copy_that_is_unfinished(tmp_path: Path) -> None:
    """It was killed between the manifest and the end."""
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    run(logs, copy)
    (copy / UNFINISHED).mkdir()
    problem = "the run that made this copy has not finished it"
    found = [(each.path, each.problem) for each in api.verify_manifest(str(copy))]
    assert found == [(str(copy / UNFINISHED), problem)]


def test_several_log_directories_have_a_copy_each(tmp_path: Path) -> None:
    logs = log_dir_in(tmp_path)
    other = make_partition(
        tmp_path / "other", {0: [keyed(0, "aa")], 2: [keyed(2, "a")]}, "orders-7"
    )
    checkpoint.write(str(other.parent / checkpoint.REPLICATION), {("orders", 7): 3})
    paths = str(tmp_path / "one"), str(tmp_path / "two")
    options = options_with(*paths)
    report = api.run([str(logs), str(other.parent)], RULES, options)
    assert [copy.path for copy in report.copies] == [*paths]
    assert [log.log_dir for log in report.logs if log.partition == 7] == [paths[1]]
    assert all(Path(path, MANIFEST).exists() for path in paths)
    with pytest.raises(api.ConfigError, match="once for each"):
        api.run([str(logs), str(other.parent)], RULES, options_with(str(tmp_path / "three")))


def test_a_dry_run_makes_nothing_and_tells_what_it_would(tmp_path: Path) -> None:
    logs = log_dir_in(tmp_path)
    before = state_of(tmp_path)
    report = api.run([str(logs)], RULES, options_with(str(tmp_path / "copy"), dry_run=True))
    assert state_of(tmp_path) == before
    [told] = report.copies
    done = run(logs, tmp_path / "copy").copies[0]
    assert (told.files, told.bytes, told.manifest) == (done.files, done.bytes, None)
    assert told.bytes <= told.needed_bytes
    assert not [notice for notice in report.notices if "refused" in notice]


def test_only_logs_of_compacted_topics_where_that_is_asked_for(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    report = run(logs, copy, compacted_only=True)
    directories = {path.name for path in copy.iterdir() if path.is_dir()}
    assert directories == {"orders-0", "orders-1", METADATA, NO_BROKER}
    assert ("events", 0) not in checkpoint.read(str(copy / checkpoint.REPLICATION))
    assert set(report.copies[0].not_wanted) == {"events-0", FUTURE, STRAY}
    assert json.loads((copy / MANIFEST).read_text())["may_broker_start"] is False
    assert (copy / NO_BROKER).is_dir()
    why = "it lacks 3 logs, which a broker would make anew, and empty"
    assert json.loads((copy / MANIFEST).read_text())["why_not"] == why
    with pytest.raises(api.ConfigError, match=r"goes with options\.output"):
        run(logs, compacted_only=True)


def may_start_on(copy: Path) -> bool:
    may: bool = json.loads((copy / MANIFEST).read_text())["may_broker_start"]
    assert may != (copy / NO_BROKER).exists()
    return may


def test_a_copy_of_a_copy_lacks_what_that_one_lacks(tmp_path: Path) -> None:
    """Of several, each is judged by its own manifest: the second one is whole."""
    first, again = tmp_path / "first", tmp_path / "again"
    run(log_dir_in(tmp_path), first, compacted_only=True)
    other = make_partition(tmp_path / "other", {0: [keyed(0, "aa")]}, "orders-7").parent
    checkpoint.write(str(other / checkpoint.REPLICATION), {("orders", 7): 2})
    options = options_with(str(again), str(tmp_path / "of-other"))
    report = api.run([str(first), str(other)], RULES, options)
    assert set(report.copies[0].not_wanted) == {"events-0", FUTURE, STRAY}
    assert not may_start_on(again)
    assert may_start_on(tmp_path / "of-other")
    run(again, tmp_path / "third")
    assert not may_start_on(tmp_path / "third")


def test_a_log_that_a_copy_misses_is_missing_from_its_copies(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    (logs / "orders-1" / file_name(20, LOG)).mkdir()
    run(logs, copy)
    report = run(copy, tmp_path / "again")
    assert report.copies[0].missing == ("orders-1",)
    assert ending_of_report(report).exit_code is ExitCode.FAILED  # nothing was left to clean
    assert not may_start_on(tmp_path / "again")
    shutil.copytree(copy / "orders-0", copy / "orders-1")  # somebody brings it back
    run(copy, tmp_path / "whole")
    assert may_start_on(tmp_path / "whole")


def test_a_copy_of_a_copy_of_links_is_one_to_start_on(tmp_path: Path) -> None:
    logs, links = log_dir_in(tmp_path), tmp_path / "links"
    run(logs, links, link=True)
    run(links, tmp_path / "own")
    assert may_start_on(tmp_path / "own")


def test_a_copy_that_cannot_say_what_it_lacks_is_not_copied(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    run(log_dir_in(tmp_path), first, compacted_only=True)
    for break_it in (lambda path: path.write_text("{}"), Path.unlink):
        break_it(first / MANIFEST)
        with pytest.raises(api.RefusedError, match="which logs are missing from this copy"):
            run(first, again)
        assert not again.exists()


def test_the_manifest_is_held_against_every_file(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    run(logs, copy)
    assert api.verify_manifest(str(copy)) == []
    log, emptied = copy / "orders-0" / file_name(0, LOG), copy / "events-0" / file_name(0, LOG)
    size = emptied.stat().st_size
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    emptied.write_bytes(b"")
    (copy / "orders-1" / file_name(12, LOG)).unlink()
    (copy / "orders-1" / "new").touch()
    found = {(finding.path, finding.problem) for finding in api.verify_manifest(str(copy))}
    assert found == {
        (str(log), f"has other bytes than {MANIFEST} says"),
        (str(emptied), f"has 0 bytes, in {MANIFEST} {size}"),
        (str(copy / "orders-1" / file_name(12, LOG)), f"is gone; {MANIFEST} has it"),
        (str(copy / "orders-1" / "new"), f"not in {MANIFEST}: it came later"),
    }
    with pytest.raises(api.ConfigError, match="there is no"):
        api.verify_manifest(str(logs))


def test_what_is_proven_of_the_copy_against_the_original(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    (logs / "orders-0" / f"{file_name(0, LOG)}.compactor-1-2").unlink()
    for snapshot in logs.rglob("*.snapshot"):
        snapshot.unlink()
    run(logs, copy)
    compared = api.verify_against(str(copy), str(logs))
    assert [each.name for each in compared.partitions] == ["orders-0", "orders-1"]
    assert (compared.linked, compared.findings) == (0, [])


def inodes_of(path: Path) -> dict[str, int]:
    return {name: state.inode for name, state in state_of(path).items()}


def test_links_are_of_closed_segments_alone_and_keep_a_broker_away(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    before = state_of(logs)
    report = run(logs, copy, link=True)
    assert state_of(logs) == before
    found, own = inodes_of(copy), inodes_of(logs)
    linked = {name for name in found if found[name] == own.get(name)}
    assert linked == {f"events-0/{file_name(0, LOG)}"}  # every other one is active or cleaned
    manifest = json.loads((copy / MANIFEST).read_text())
    assert (manifest["may_broker_start"], "hard links" in manifest["why_not"]) == (False, True)
    assert (copy / NO_BROKER).is_dir()
    assert report.copies[0].linked_bytes > 0
    copied = bytes_in(copy)
    del copied[MANIFEST], copied[f"{NO_BROKER}/{TEXT_FILE}"]
    assert copied == in_place_of(logs)


def test_nothing_is_linked_that_would_be_changed_in_place(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    with pytest.raises(api.ConfigError, match=r"goes with options\.output"):
        run(logs, link=True)
    with pytest.raises(api.ConfigError, match=r"not with options\.recover_first"):
        run(logs, copy, link=True, recover_first=True)
    (logs / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    with pytest.raises(api.ConfigError, match="would change linked files"):
        run(logs, copy, link=True)
    assert not copy.exists()


def test_room_is_looked_for_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    needed = run(logs, copy, dry_run=True).copies[0].needed_bytes
    of_system = os.statvfs

    def statvfs(path: str) -> SimpleNamespace:
        found = of_system(path)
        return SimpleNamespace(
            f_bavail=needed - 1, f_frsize=1, f_files=found.f_files, f_favail=found.f_favail
        )

    monkeypatch.setattr(os, "statvfs", statvfs)
    [told] = [line for line in run(logs, copy, dry_run=True).notices if "refused" in line]
    assert "no room: the copy takes" in told
    with pytest.raises(api.RefusedError, match="no room: the copy takes") as refused:
        run(logs, copy)
    assert refused.value.reason_code == "no-room"
    assert {path.name for path in tmp_path.iterdir()} == {"logs"}

    def share(old: int, new: int) -> bool:
        os.pwrite(new, os.pread(old, 1 << 20, 0), 0)
        return True

    monkeypatch.setattr(cloning, "_share", share)  # then it takes no room, but for the round
    with pytest.raises(api.RefusedError, match="no room: up to"):
        run(logs, copy)


def test_no_command_changes_a_copy_of_hard_links(tmp_path: Path) -> None:
    """Its closed segments are the files of the original: to cut one would cut both."""
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    run(logs, copy, link=True)
    before = state_of(logs)
    for change in (
        lambda: api.log_truncate(str(copy), "orders-0", 1, api.ChangeOptions(only_replica=True)),
        lambda: api.recover([str(copy)], RULES),
        lambda: api.run([str(copy)], RULES, api.RunOptions(in_process=True)),
    ):
        with pytest.raises(api.RefusedError, match="nobody is to change"):
            change()
    assert state_of(logs) == before


def test_a_place_where_another_run_makes_its_copy_is_in_use(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    copy.mkdir()
    with held(copy), pytest.raises(api.RefusedError, match="locked") as raised:
        run(logs, copy)
    assert "rm -r" not in str(raised.value)


def test_the_directory_of_a_copy_is_like_that_of_the_original(tmp_path: Path) -> None:
    logs, copy = log_dir_in(tmp_path), tmp_path / "copy"
    logs.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(logs, 1234, 5678)
    run(logs, copy)
    found, model = copy.stat(), logs.stat()
    assert (found.st_mode, found.st_uid, found.st_gid) == (
        model.st_mode,
        model.st_uid,
        model.st_gid,
    )


@pytest.mark.parametrize("is_cut_short", [False, True])
def test_deleted_files_go_along_where_they_say_how_far_a_swap_had_come(
    tmp_path: Path, is_cut_short: bool
) -> None:
    """An empty swap beside its first source is revoked only if none of the others is deleted."""
    log = tmp_path / "orders-0"
    log.mkdir()
    names = [file_name(0, LOG), f"{file_name(10, LOG)}.deleted"]
    names += [f"{file_name(0, LOG)}.swap"] if is_cut_short else []
    for name in names:
        (log / name).write_bytes(b"")
    [found] = contents_of(str(tmp_path), lambda _: True, LOCAL).logs
    assert {entry.name for entry in found.files} == set(names if is_cut_short else names[:1])


def test_files_in_a_partition_that_are_not_kafkas_are_copied_and_left(tmp_path: Path) -> None:
    logs = log_dir_in(tmp_path)
    names = [f"{file_name(0, LOG)}.bak", f"{file_name(0, LOG)}.gz", f".{file_name(0, LOG)}.Ab12Cd"]
    for name in names:
        (logs / "orders-0" / name).write_bytes(name.encode())
    run(logs, tmp_path / "copy")
    for root in (logs, tmp_path / "copy"):
        for name in names:
            assert (root / "orders-0" / name).read_bytes() == name.encode()
