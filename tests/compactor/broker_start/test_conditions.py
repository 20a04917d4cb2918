"""What a start comes to, case by case. Each was seen with a broker 4.3.1: F-16.4."""

import shlex
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from compactor import api
from compactor.api import StartOutcome
from compactor.copying.manifest import write
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER, UNFINISHED
from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.copy_marks import set_mark
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.broker_start.test_commands import broker_dir, put
from tests.compactor.log_dirs.test_directory_state import LINKED
from tests.compactor.settings.test_cluster_settings import identify, registration
from tests.storage.log.test_cluster_metadata import A, B, batches, log, partition, topic
from tests.support.local_command import run_command

ENDS, OFFLINE = StartOutcome.BROKER_ENDS, StartOutcome.DIRECTORY_OFFLINE
EMPTIED, ASIDE = StartOutcome.LOG_EMPTIED, StartOutcome.LOG_SET_ASIDE
LOSS = StartOutcome.LOADED_WITH_LOSS
ID = b"AAAAAAAAAAEAAAAAAAAAAg"  # of topic t
OTHER = UUID(int=7 << 64 | 8)


def outcomes(*log_dirs: Path) -> list[StartOutcome]:
    return [problem.outcome for problem in api.start_problems([str(path) for path in log_dirs])]


TOPIC_IDS = [
    (b"version: 0\ntopic_id: " + ID, []),
    (b"version: 0\ntopic_id: " + ID + b"\n", []),
    (b"version: 1\r\ntopic_id:  " + ID + b"\r\nmore", []),
    (b"version: 0\ntopic_id: " + ID + b"==", []),
    (b"", [ENDS]),
    (b"version: 0", [ENDS]),
    (b"version: 0\n", [ENDS]),
    (b"version: 0\ntopic_id: abc", [ENDS]),
    (b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!", [ENDS]),
    (b"version: 0\ntopic_id: " + ID + b"AAAA", [ENDS]),
    (b"version: 0\ntopic_id: ", [OFFLINE]),
    (b"version: 0\n\n", [OFFLINE]),
    (b"\0" * 43, [OFFLINE]),
    (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", [OFFLINE]),
    (b"version: -1\ntopic_id: " + ID, [OFFLINE]),
    (b"version: x\ntopic_id: " + ID, [OFFLINE]),
    (b"version:0\ntopic_id:" + ID, [OFFLINE]),
    (b"version: 0\ntopic_id: \xff\xfe", [OFFLINE]),
    (b"version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAw", [EMPTIED]),  # of another topic
    (None, [EMPTIED]),
]
EPOCHS = [(b"", []), (b"0\n1\n0 0\n", []), (b"0\n1\n0 x\n", [ENDS]), (b"0\n1\n0\n", [OFFLINE])]
NAMES = [
    ("x.log", [ENDS]),
    (".log", [ENDS]),
    ("99999999999999999999.log", [ENDS]),
    ("x.snapshot", [ENDS]),
    ("x.swap", [ENDS]),
    ("x.deleted", []),
    ("notes.txt", []),
    ("9.snapshot", []),
    ("9.index", []),
    ("9.log", [LOSS]),
    ("000000000000000000009.log", [LOSS]),
    ("000000000000000000000.log", []),  # there is a segment at offset 0
]
OF_METADATA_LOG = [
    (LEADER_EPOCH_CHECKPOINT, b"0\n1\n0 0\n", []),
    (LEADER_EPOCH_CHECKPOINT, bytes(64), [ENDS]),
    (PARTITION_METADATA, b"", [ENDS]),
    (PARTITION_METADATA, bytes(43), [ENDS]),
    ("quorum-state", b'{"data_version":1}', []),
    ("quorum-state", bytes(64), [ENDS]),
    ("quorum-state", b"", [ENDS]),
    ("x.log", b"", [ENDS]),
]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        *((f"t-0/{PARTITION_METADATA}", data, expected) for data, expected in TOPIC_IDS),
        *((f"t-0/{LEADER_EPOCH_CHECKPOINT}", data, expected) for data, expected in EPOCHS),
        *((f"t-0/{name}", b"", expected) for name, expected in NAMES),
        *((f"{METADATA_DIR}/{name}", *rest) for name, *rest in OF_METADATA_LOG),
    ],
)
def test_a_file_of_a_log(
    tmp_path: Path, name: str, data: bytes | None, expected: list[StartOutcome]
) -> None:
    log_dir = broker_dir(tmp_path)
    put(name, data)(log_dir)
    assert outcomes(log_dir) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"0\n0\n", None),
        (b"0", None),
        (b"0\r\n0\r\n", None),
        (b"\0" * 20, "malformed"),
        (b"0\n2\nt 0 6\n", "malformed"),
        (b"0\n1\nt 0\n", "malformed"),
        (b"1\n0\n", "malformed"),
        (b"0\n0\n\n", "malformed"),
        (b"0\n1\n\xff 0 6\n", "malformed"),
        (b"0\n1\nt 0 x\n", "no number"),
        (b"0\n3\nt x 6\nt 0", "no number"),  # which is met first
        (b"0\n3\nt 0\nt x 6\n", "malformed"),
    ],
)
def test_a_checkpoint_that_is_malformed_and_one_with_a_number_that_is_none(
    tmp_path: Path, data: bytes, expected: str | None
) -> None:
    no_number = {
        checkpoint.RECOVERY_POINT: [],
        checkpoint.LOG_START: [LOSS],
        checkpoint.REPLICATION: [StartOutcome.LOGS_NOT_SERVED],
        checkpoint.CLEANER_OFFSET: [StartOutcome.CLEANER_ENDS],
    }
    log_dir = broker_dir(tmp_path)
    for name, of_no_number in no_number.items():
        before = (log_dir / name).read_bytes() if (log_dir / name).exists() else b""
        (log_dir / name).write_bytes(data)
        wanted = {None: [], "malformed": [OFFLINE], "no number": of_no_number}[expected]
        assert outcomes(log_dir) == wanted, name
        (log_dir / name).write_bytes(before)


@pytest.mark.parametrize("name", [LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA])
def test_a_directory_for_a_file_of_a_log(tmp_path: Path, name: str) -> None:
    log_dir = broker_dir(tmp_path)
    path = log_dir / "t-0" / name
    path.unlink(missing_ok=True)
    path.mkdir()
    assert outcomes(log_dir) == [OFFLINE]


@pytest.mark.parametrize(
    "name",
    [
        f"t-0/{LEADER_EPOCH_CHECKPOINT}",
        f"t-0/{PARTITION_METADATA}",
        checkpoint.RECOVERY_POINT,
        checkpoint.LOG_START,
        checkpoint.REPLICATION,
        META_PROPERTIES,
    ],
)
def test_nobody_is_told_to_start_where_a_small_file_cannot_be_read(
    tmp_path: Path, name: str
) -> None:
    """An unknown outcome forbids a start: here a link that leads to itself."""
    log_dir = broker_dir(tmp_path)
    (log_dir / name).unlink(missing_ok=True)
    (log_dir / name).symlink_to(log_dir / name)
    assert api.forbid_start(api.start_problems([str(log_dir)]))
    for command in ("recover", "verify", "doctor", "plan"):
        ended = run_command(command, log_dir)
        assert "Next: start the broker" not in ended.out + ended.error, command
        assert ended.code or command == "plan", command


@pytest.mark.parametrize(
    "name", [checkpoint.RECOVERY_POINT, checkpoint.LOG_START, checkpoint.REPLICATION]
)
def test_a_directory_for_a_file_of_a_log_directory(tmp_path: Path, name: str) -> None:
    log_dir = broker_dir(tmp_path)
    (log_dir / name).unlink(missing_ok=True)
    (log_dir / name).mkdir()
    assert outcomes(log_dir)[0] is ENDS
    assert "tart the broker" not in run_command("recover", log_dir).out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lost+found", [ENDS]),
        (".staging", [ENDS]),
        ("x-y", [ENDS]),
        ("t-0-delete", [ENDS]),
        ("remote-log-index-cache", []),
        (f"t-1.{'0' * 32}-delete", []),
        (f"t-1.{'0' * 32}-stray", []),
        ("staging-1", [ASIDE]),  # the cluster has no such topic
        ("staging-\uff11", [ASIDE]),  # Java takes a digit of any script
    ],
)
def test_names_of_directories(tmp_path: Path, name: str, expected: list[StartOutcome]) -> None:
    log_dir = broker_dir(tmp_path)
    (log_dir / name).mkdir()
    assert outcomes(log_dir) == expected


def other_dir(root: Path, properties: bytes | None) -> Path:
    """A second log directory, without a log."""
    path = root / "other"
    path.mkdir()
    if properties is not None:
        (path / META_PROPERTIES).write_bytes(properties)
    return path


WHOLE = meta_properties.encode(
    MetaProperties(1, "cluster", 1, partition_metadata.encode_uuid(OTHER))
)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (WHOLE, []),
        (None, [ENDS]),
        (b"", [ENDS]),
        (b"\0" * 30, [ENDS]),
        (b"version=1\n", [OFFLINE]),
        (b"version=7\n", [OFFLINE]),
        (WHOLE.replace(b"directory.id=", b"directory.id=x"), [OFFLINE]),
    ],
)
def test_the_identity_of_a_second_log_directory(
    tmp_path: Path, properties: bytes | None, expected: list[StartOutcome]
) -> None:
    assert outcomes(broker_dir(tmp_path), other_dir(tmp_path, properties)) == expected


def test_two_directories_with_one_id(tmp_path: Path) -> None:
    first = broker_dir(tmp_path)
    second = other_dir(tmp_path, (first / META_PROPERTIES).read_bytes())
    assert partition_metadata.encode_uuid(B).encode() in (second / META_PROPERTIES).read_bytes()
    assert outcomes(first, second) == [ENDS, ENDS]


def test_a_torn_end_after_a_clean_shutdown(tmp_path: Path) -> None:
    """A broker appends behind it; without the mark it cuts it off."""
    log_dir = broker_dir(tmp_path)
    last = max((log_dir / "t-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + b"torn")
    (problem,) = api.start_problems([str(log_dir)])
    assert (problem.outcome, problem.path) == (LOSS, str(last))
    assert CLEAN_SHUTDOWN in (problem.command or "")
    (log_dir / CLEAN_SHUTDOWN).unlink()
    assert outcomes(log_dir) == []


def test_a_log_start_behind_the_end(tmp_path: Path) -> None:
    log_dir = broker_dir(tmp_path)
    checkpoint.write(str(log_dir / checkpoint.LOG_START), {("t", 0): 99})
    assert outcomes(log_dir) == [LOSS]


def test_two_metadata_logs_of_one_broker(tmp_path: Path) -> None:
    first, second = broker_dir(tmp_path), other_dir(tmp_path, WHOLE)
    (second / METADATA_DIR).mkdir()
    assert outcomes(first, second) == [ENDS, ENDS]


@pytest.mark.parametrize("name", [UNFINISHED, NO_BROKER, MANIFEST])
@pytest.mark.parametrize("is_directory", [True, False])
def test_a_broker_minds_the_directory_of_a_mark_and_neither_a_file_nor_the_manifest(
    tmp_path: Path, name: str, is_directory: bool
) -> None:
    log_dir = broker_dir(tmp_path)
    if name == MANIFEST:
        (log_dir / name).write_text('{"why_not": null}' if is_directory else '{"why_not": "links"}')
    elif is_directory:
        set_mark(str(log_dir), name, LOCAL)
    else:
        (log_dir / name).write_text("of an object store\n")
    expected = [ENDS] if is_directory else [StartOutcome.COPY_CHANGED]
    assert outcomes(log_dir) == ([] if name == MANIFEST and is_directory else expected)


def test_verify_of_a_copy_whose_mark_was_lost_and_brought_back(tmp_path: Path) -> None:
    log_dir = broker_dir(tmp_path)
    sound = run_command("verify", log_dir)
    write(str(log_dir), LINKED, LOCAL)
    lost = run_command("verify", log_dir)
    (problem,) = api.start_problems([str(log_dir)])
    assert problem.forbids_start
    assert problem.command is not None
    subprocess.run(shlex.split(problem.command), check=True)
    assert outcomes(log_dir) == [ENDS]
    kept = run_command("verify", log_dir)
    assert (sound.code, lost.code, kept.code) == (0, 4, 0), (sound, lost, kept)
    assert "Next: start no broker here before this is mended" in lost.out
    assert "it has links" in lost.out
    assert "nobody is to change" in kept.out


def test_a_directory_that_lost_the_id_by_which_the_cluster_knows_it(tmp_path: Path) -> None:
    """A broker gives it a new one, and waits for the old directory."""
    log_dir = broker_dir(tmp_path)
    path = log_dir / METADATA_DIR / "00000000000000000000.log"
    path.unlink()
    values = topic("t", A), partition(0, A), registration(1, B)
    log(log_dir / METADATA_DIR, 0, batches(0, *values))
    assert outcomes(log_dir) == []
    meta_properties.write(str(log_dir), MetaProperties(1, "cluster", 1, None))
    (problem,) = api.start_problems([str(log_dir)])
    assert problem.outcome is StartOutcome.LOGS_NOT_SERVED
    assert f"directory.id={partition_metadata.encode_uuid(B)}" in problem.repair


def two_dirs(root: Path, *more: bytes) -> tuple[Path, Path]:
    """Directory B, which has the log, and A, whose metadata log registers both for broker 1."""
    log_dir, first = broker_dir(root), root / "first"
    first.mkdir()
    identify(first, 1, A)
    (log_dir / METADATA_DIR).rename(first / METADATA_DIR)
    values = topic("t", A), partition(0, A), registration(1, A, B), *more
    log(first / METADATA_DIR, 0, batches(0, *values))
    return log_dir, first


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "topic_id", "expected"),
    [
        ("cluster", 5, A, [ENDS, StartOutcome.LOGS_NOT_SERVED]),  # no broker 5 is registered
        ("clust", 1, A, [ENDS, StartOutcome.LOGS_NOT_SERVED]),  # cut short
        ("cluster", 2, A, []),  # of another broker on the same host
        ("clust", 1, OTHER, []),  # of another cluster, with a topic of the same name
    ],
)
def test_a_directory_that_names_a_broker_that_there_is_not_and_has_no_id(
    tmp_path: Path, cluster_id: str, node_id: int, topic_id: UUID, expected: list[StartOutcome]
) -> None:
    """A broker that is given both does not start. The metadata log has t-0 in directory B."""
    log_dir, first = two_dirs(tmp_path, registration(2, OTHER))
    assert outcomes(first, log_dir) == []
    meta_properties.write(str(log_dir), MetaProperties(1, cluster_id, node_id, None))
    note = log_dir / "t-0" / PARTITION_METADATA
    partition_metadata.write(str(note), PartitionMetadata(0, topic_id))
    assert outcomes(first, log_dir) == expected


@pytest.mark.parametrize("command", ["verify", "recover", "doctor"])
@pytest.mark.parametrize(
    ("cluster_id", "node_id", "id_", "is_wrong"),
    [
        ("cluster", 1, B, False),
        ("cluster", 5, B, True),
        ("another", 1, B, True),
        ("another", 1, OTHER, False),  # of another broker on the same host
    ],
)
def test_a_directory_given_alone_that_a_metadata_log_beside_has_for_another_broker(
    tmp_path: Path, command: str, cluster_id: str, node_id: int, id_: UUID, is_wrong: bool
) -> None:
    log_dir, _ = two_dirs(tmp_path)
    text = partition_metadata.encode_uuid(id_)
    meta_properties.write(str(log_dir), MetaProperties(1, cluster_id, node_id, text))
    found = run_command(command, log_dir)
    shown = " ".join((found.out + found.error).split())
    says = f"names node {node_id} of cluster {cluster_id}, and the metadata log has this directory"
    assert (says in shown) == is_wrong
    assert found.code == (4 if is_wrong else 0), shown
    assert not is_wrong or "ext: start the broker" not in shown
