"""A copy that lacks logs, by its manifest: every command says so, and none calls it whole."""

import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from compactor import api
from compactor.command_line.commands import app
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER
from storage.file_names import LOG, file_name
from storage.formats import checkpoint, partition_metadata
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from tests.compactor.api.test_copies import METADATA, RULES, appending, log_dir_in, options_with
from tests.compactor.log_dirs.test_directory_state import commands_of
from tests.support.file_states import state_of
from tests.support.local_command import Ended, run_command, use_local_rounds

pytestmark = pytest.mark.usefixtures("without_spark")

SETTINGS = ("--topic-configs", "{settings}")
ALONE = ("--only-replica", "--yes", *SETTINGS)
GONE = ("{copy}", "orders-1")
MARKED, UNMARKED, ALLOWED = "as it was made", "without its mark", "by a manifest that allows it"
STATES = pytest.mark.parametrize("state", [MARKED, UNMARKED, ALLOWED])
# the words of each command, and how it ends where the marks keep everybody from changing the copy,
# and where they do not
OF_DIRECTORIES = {
    "plan": (("{copy}", *SETTINGS), 4, 4),
    "run": (("{copy}", *SETTINGS), 3, 4),
    "run --dry-run": (("{copy}", *SETTINGS), 4, 4),
    "recover": (("{copy}", *SETTINGS), 3, 4),
    "doctor": (("{copy}",), 4, 4),
    "verify": (("{copy}",), 4, 4),
}
OF_THE_LOG = {
    "explain": ((*GONE, *SETTINGS), 4, 4),
    "log offsets": (GONE, 3, 3),
    "log read": (GONE, 3, 3),
    "log roll": ((*GONE, "--yes", *SETTINGS), 3, 3),
    "log delete-records": ((*GONE, "--before", "4", *ALONE), 3, 3),
    "log truncate": ((*GONE, "--to", "1", *ALONE), 3, 3),
    "log append": ((*GONE, "--records", "{records}", *ALONE), 3, 3),
    "log abort": ((*GONE, "--producer-id", "7", *ALONE), 3, 3),
    "log move": ((*GONE, "{other}", "--yes"), 3, 3),
}
SAY_NOTHING_OF_LOGS = {
    "configs",  # of topics
    "dump",  # of files
    "inspect",  # of the logs that are there
    "undo",  # of a directory of originals
    "report",  # of reports
}


def test_no_command_is_forgotten() -> None:
    known = {name.removesuffix(" --dry-run") for name in (*OF_DIRECTORIES, *OF_THE_LOG)}
    assert commands_of(app) == known | SAY_NOTHING_OF_LOGS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy without orders-1, which changed while it was copied."""
    root = tmp_path_factory.mktemp("made")
    logs = log_dir_in(root)
    shutil.rmtree(logs / METADATA)
    for path in root.glob("logs/*/*.snapshot"):
        path.unlink()  # they are made up
    active = logs / "orders-1" / file_name(12, LOG)
    api.run([str(logs)], RULES, options_with(str(root / "copy")), appending(active))
    (root / "other").mkdir()
    shutil.copy(logs / "meta.properties", root / "other")
    (root / "settings").write_text(json.dumps(RULES.topic_configs))
    (root / "records").write_text('{"key": "YQ==", "value": "YQ=="}\n')
    return root


@pytest.fixture
def lacking(made: Path, tmp_path: Path, state: str) -> Path:
    root = tmp_path / "root"
    shutil.copytree(made, root)
    if state != MARKED:
        shutil.rmtree(root / "copy" / NO_BROKER)
    if state == ALLOWED:
        fields = json.loads((root / "copy" / MANIFEST).read_text())
        fields |= {"why_not": None, "may_broker_start": True}
        (root / "copy" / MANIFEST).write_text(json.dumps(fields))
    return root


def ended(root: Path, name: str, words: tuple[str, ...]) -> Ended:
    places = {each: str(root / each) for each in ("copy", "other", "settings", "records")}
    return run_command(*name.split(), *(word.format_map(places) for word in words))


def shown(found: Ended) -> str:
    return " ".join(f"{found.out} {found.error}".split())


@STATES
@pytest.mark.parametrize("name", [*OF_DIRECTORIES, *OF_THE_LOG])
def test_every_command_says_which_logs_a_copy_lacks(
    lacking: Path,
    state: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    use_local_rounds(monkeypatch, tmp_path)
    words, code_if_kept, code = {**OF_DIRECTORIES, **OF_THE_LOG}[name]
    before = state_of(lacking / "copy")
    found = ended(lacking, name, words)
    said = shown(found)
    assert found.code == (code if state == ALLOWED else code_if_kept), said
    if found.code == 4 or state == ALLOWED:
        assert "orders-1" in said
        assert "it is not in this copy: changed while it was copied" in said
    assert "tart the broker" not in said
    assert "all sound" not in said
    assert not (lacking / "copy" / "orders-1").exists()
    if name not in ("run", "recover"):
        after = state_of(lacking / "copy")
        assert {n for n in after if before.get(n) != after[n]} <= {".lock"}


@STATES
@pytest.mark.parametrize("name", ["plan", "run --dry-run", "verify", "doctor"])
def test_a_log_that_was_brought_back_is_not_missed(
    lacking: Path,
    state: str,
    name: str,
) -> None:
    del state
    shutil.copytree(lacking / "copy" / "orders-0", lacking / "copy" / "orders-1")
    assert "not in this copy: " not in shown(ended(lacking, name, OF_DIRECTORIES[name][0]))


@STATES
@pytest.mark.parametrize("name", ["plan", "run --dry-run"])
def test_a_log_that_filters_leave_out_is_not_missed(lacking: Path, state: str, name: str) -> None:
    del state
    words = (*OF_DIRECTORIES[name][0], "--exclude", "orders")
    assert ended(lacking, name, words).code == 0


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("name", ["verify", "doctor"])
def test_a_copy_that_cannot_say_what_it_lacks_is_not_sound(
    made: Path, tmp_path: Path, name: str, is_damaged: bool
) -> None:
    root = tmp_path / "root"
    shutil.copytree(made, root)
    manifest = root / "copy" / MANIFEST
    if is_damaged:
        manifest.write_text("{}")
    else:
        manifest.unlink()
    found = ended(root, name, OF_DIRECTORIES[name][0])
    assert found.code == 4
    assert "Nothing else says which logs are missing from this copy" in shown(found)


@pytest.mark.parametrize("name", ["plan", "run --dry-run", "run", "recover", "doctor", "verify"])
def test_a_copy_of_chosen_topics_passes_with_one_line(
    made: Path, tmp_path: Path, name: str
) -> None:
    """As tools make it that take the files of the directory itself along."""
    root = tmp_path / "root"
    shutil.copytree(made, root)
    copy = root / "copy"
    shutil.rmtree(copy)
    (root / "logs").rename(copy)  # one beside it would have them
    for log in ("orders-1", "events-0"):
        shutil.rmtree(copy / log)
    noted = PartitionMetadata(0, UUID(int=7 << 64))
    partition_metadata.write(str(copy / "orders-0" / PARTITION_METADATA), noted)
    known = checkpoint.read(str(copy / checkpoint.REPLICATION))
    assert {("orders", 1), ("events", 0)} <= known.keys()
    found = ended(root, name, OF_DIRECTORIES[name][0])
    line = "ot in this directory, though its checkpoints name them: 2 logs (events-0, orders-1)"
    for_people = found._replace(out=found.out.rpartition('{"schema_version"')[0])
    assert shown(for_people).count(line) == 1
    assert found.code == 0, shown(found)
    some = ended(root, name, (*OF_DIRECTORIES[name][0], "--include", "orders"))
    if name in ("plan", "run --dry-run", "run"):
        assert "1 log (orders-1)" in shown(some)
