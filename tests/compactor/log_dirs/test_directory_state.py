"""What every command does with a copy that was never finished, or that nobody may change.

The files of such a copy may be those of the original, by hard links.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactor import LogManager, api
from compactor.command_line.commands import app
from compactor.copying.manifest import Manifest, write
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER, UNFINISHED
from storage.files.local import LOCAL
from storage.formats import clean_shutdown
from storage.formats.copy_marks import CopyMarkedError, set_mark, take_mark
from tests.compactor.api.test_copies import METADATA, RULES, log_dir_in
from tests.support.file_states import state_of
from tests.support.local_command import Ended, run_command, use_local_rounds

pytestmark = pytest.mark.usefixtures("without_spark")

LOG = ("{copy}", "orders-0")
SETTINGS = ("--topic-configs", "{settings}")
SURE = ("--yes", *SETTINGS)
ALONE = ("--only-replica", *SURE)
CHANGING = {
    "run": ("{copy}", *SETTINGS),
    "recover": ("{copy}", *SETTINGS),
    "undo": ("{kept}",),
    "log roll": (*LOG, *SURE),
    "log delete-records": (*LOG, "--before", "4", *ALONE),
    "log truncate": (*LOG, "--to", "1", *ALONE),
    "log append": (*LOG, "--records", "{records}", *ALONE),
    "log abort": (*LOG, "--producer-id", "7", *ALONE),
    "log move": (*LOG, "{other}", "--yes"),
}
READING = {
    "plan": ("{copy}", *SETTINGS),
    "explain": (*LOG, *SETTINGS),
    "configs": ("{copy}", *SETTINGS),
    "inspect": ("{copy}", *SETTINGS),
    "doctor": ("{copy}",),
    "dump": LOG,
    "verify": ("{copy}",),
    "log offsets": LOG,
    "log read": LOG,
}
OF_NO_LOG_DIR = {"report"}
WHY_NOT = "a manifest alone"  # the directory was lost on the way
MARKS = pytest.mark.parametrize("mark", [UNFINISHED, NO_BROKER, WHY_NOT])
LINKED = Manifest(
    source="/original",
    run_id="1",
    version="1",
    finished_at="2026-01-01T00:00:00Z",
    why_not="it has links",
    missing={},
    not_wanted=(),
    files=(),
)


def commands_of(command: Any, name: str = "") -> set[str]:
    """Every command of the parser, by the words that call it."""
    below = getattr(command, "commands", None)
    if below is None:
        return {name}
    return {found for word in below for found in commands_of(below[word], f"{name} {word}".strip())}


def test_no_command_is_forgotten() -> None:
    assert commands_of(app) == {*CHANGING, *READING, *OF_NO_LOG_DIR}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory after a run that can be undone, and another one that has the same files."""
    root = tmp_path_factory.mktemp("made")
    shutil.rmtree(log_dir_in(root) / METADATA)
    for path in root.glob("logs/*/*.snapshot"):
        path.unlink()  # they are made up
    (root / "logs").rename(root / "copy")
    options = api.RunOptions(in_process=True, keep_originals=str(root / "kept"))
    api.run([str(root / "copy")], RULES, options)
    shutil.copytree(root / "copy", root / "original", copy_function=os.link)
    (root / "other").mkdir()
    shutil.copy(root / "copy" / "meta.properties", root / "other")
    (root / "settings").write_text(json.dumps(RULES.topic_configs))
    (root / "records").write_text('{"key": "YQ==", "value": "YQ=="}\n')
    return root


@pytest.fixture
def marked(made: Path, mark: str) -> Iterator[Path]:
    if mark == WHY_NOT:
        write(str(made / "copy"), LINKED, LOCAL)
    else:
        set_mark(str(made / "copy"), mark, LOCAL)
    yield made
    if mark != WHY_NOT:
        take_mark(str(made / "copy"), mark, LOCAL)
    (made / "copy" / MANIFEST).unlink(missing_ok=True)


def words_of(root: Path, command: str, more: tuple[str, ...]) -> list[str]:
    places = {name: str(root / name) for name in ("copy", "other", "settings", "records")}
    places["kept"] = str(next((root / "kept").iterdir()))
    return [*command.split(), *(word.format_map(places) for word in more)]


def says_why(ended: Ended, mark: str) -> bool:
    said = "never finished" if mark == UNFINISHED else "nobody is to change"
    return said in " ".join(f"{ended.out} {ended.error}".split())


@MARKS
@pytest.mark.parametrize("is_dry", [False, True])
@pytest.mark.parametrize("command", CHANGING)
def test_a_copy_is_not_changed_nor_its_original_through_it(
    marked: Path, mark: str, command: str, is_dry: bool
) -> None:
    before = state_of(marked)
    dry = ("--dry-run",) if is_dry and command not in ("recover", "undo") else ()
    ended = run_command(*words_of(marked, command, CHANGING[command]), *dry)
    changed = {name for name, state in state_of(marked).items() if before.get(name) != state}
    assert changed <= {"copy/.lock", "other/.lock"}
    assert says_why(ended, mark)
    assert ended.code == (0 if dry and command == "run" else 3), ended.error


@pytest.mark.parametrize("command", CHANGING)
@pytest.mark.parametrize("is_torn", [False, True])
def test_a_backup_by_hard_links_does_not_change_with_its_original(
    made: Path, tmp_path: Path, command: str, is_torn: bool
) -> None:
    """`cp -al` leaves no mark: what is written in place gets bytes of its own before."""
    root = tmp_path / "root"
    shutil.copytree(made, root)
    for log_dir in ("copy", "other"):
        clean_shutdown.write(str(root / log_dir))
    more = CHANGING[command]
    if is_torn:
        (root / "copy" / clean_shutdown.CLEAN_SHUTDOWN).unlink()
        active = max((root / "copy" / "orders-0").glob("*.log"))
        active.write_bytes(active.read_bytes() + b"torn")
        (root / "copy" / "orders-0" / active.with_suffix(".index").name).write_bytes(bytes(80))
        more += ("--recover-first",) if command.split()[0] in ("run", "log") else ()
    shutil.copytree(root / "copy", tmp_path / "backup", copy_function=os.link)
    before, changed = state_of(tmp_path / "backup"), state_of(root)
    ended = run_command(*words_of(root, command, more))
    assert state_of(tmp_path / "backup") == before, ended
    if ended.code == 0 and command.startswith("log"):  # the others find nothing to do
        assert state_of(root) != changed


@MARKS
@pytest.mark.parametrize("command", READING)
def test_what_only_reads_says_at_most_that_a_run_would_be_refused(
    marked: Path, mark: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_local_rounds(monkeypatch, tmp_path)
    before = state_of(marked)
    ended = run_command(*words_of(marked, command, READING[command]))
    assert state_of(marked) == before
    assert says_why(ended, mark) == (command in ("plan", "explain", "doctor", "verify")), ended
    assert "start the broker" not in ended.out


@MARKS
@pytest.mark.parametrize("only", [(), (LOG[1],)])
def test_a_copy_is_a_finding_unless_it_is_finished_and_keeps_brokers_away(
    marked: Path, mark: str, only: tuple[str, ...]
) -> None:
    if mark == NO_BROKER:  # always beside a manifest
        write(str(marked / "copy"), LINKED, LOCAL)
    found = api.verify(marked / "copy", only)
    codes = {finding.reason_code for finding in found.findings}
    of_copies = {"copy-to-keep", "output-in-use"}
    expected = {UNFINISHED: {"output-in-use"}, NO_BROKER: set(), WHY_NOT: {"copy-to-keep"}}
    assert codes & of_copies == expected[mark]
    assert any("nobody is to change" in notice for notice in found.notices) == (mark == NO_BROKER)


@MARKS
def test_what_was_never_finished_is_neither_copied_nor_compared_with(
    marked: Path, mark: str, tmp_path: Path
) -> None:
    copy, settings = str(marked / "copy"), ["--topic-configs", str(marked / "settings")]
    if mark == NO_BROKER:  # always beside a manifest
        write(copy, LINKED, LOCAL)
    copying = run_command("run", copy, "--output", tmp_path / "new", *settings, "--dry-run")
    comparing = run_command("verify", marked / "original", "--against", copy)
    is_refused = mark == UNFINISHED
    assert [copying.code == 3, comparing.code == 3] == [is_refused, is_refused]
    assert ("never finished" in copying.error, "never finished" in comparing.error) == (
        is_refused,
        is_refused,
    )


@MARKS
def test_a_log_that_is_moved_does_not_go_into_a_copy(marked: Path, mark: str) -> None:
    assert (marked / "copy" / mark).is_dir() != (mark == WHY_NOT)
    before = state_of(marked)
    ended = run_command("log", "move", marked / "original", "orders-0", marked / "copy", "--yes")
    assert ended.code == 3, ended
    assert {n for n, s in state_of(marked).items() if before.get(n) != s} <= {"original/.lock"}


@MARKS
def test_a_log_manager_opens_no_copy(marked: Path, mark: str) -> None:
    """Nor any other of its directories; their locks are given back."""
    before = state_of(marked)
    paths = [str(marked / "other"), str(marked / "copy")]
    said = "never finished" if mark == UNFINISHED else "nobody is to change"
    for _ in range(2):
        with pytest.raises(CopyMarkedError, match=said) as caught:
            LogManager(paths).start()
        assert str(caught.value).endswith("Nothing was changed")
    assert {n for n, s in state_of(marked).items() if before.get(n) != s} <= {
        "copy/.lock", "other/.lock",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["verify", "plan", "doctor", "log roll"])
def test_a_manifest_that_cannot_be_read_counts_as_one_that_forbids_it(
    made: Path, command: str
) -> None:
    (made / "copy" / MANIFEST).mkdir()
    try:
        ended = run_command(*words_of(made, command, {**CHANGING, **READING}[command]))
    finally:
        (made / "copy" / MANIFEST).rmdir()
    assert ended.code == {"log roll": 3, "plan": 0}.get(command, 4), ended
    shown = " ".join(f"{ended.out} {ended.error}".split())
    assert "the manifest cannot be read: is a directory" in shown


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"why_not"'])
def test_a_manifest_that_cannot_say_whether_a_broker_may_start_counts_as_one_that_forbids_it(
    made: Path, text: str
) -> None:
    (made / "copy" / MANIFEST).write_text(text)
    try:
        ended = run_command(*words_of(made, "log roll", CHANGING["log roll"]))
    finally:
        (made / "copy" / MANIFEST).unlink()
    assert ended.code == 3
    assert "manifest is damaged" in " ".join(ended.error.split())
