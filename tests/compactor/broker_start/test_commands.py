"""No command recommends a start that fails or loses a log: each names what is wrong, and mends it.

What a broker 4.3.1 does with each of these files was seen with a real one (tests/broker).
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from compactor import api
from compactor.api import StartOutcome
from storage.formats import checkpoint, partition_metadata
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import Shape, build
from tests.compactor.settings.test_cluster_settings import identify
from tests.storage.log.test_cluster_metadata import A, B, batches, config, log, partition, topic
from tests.support.local_command import run_command

pytestmark = pytest.mark.usefixtures("without_spark")

POLICY = config("cleanup.policy", "compact")
ID = partition_metadata.encode_uuid(A)
COMMANDS = (
    ("verify", "{data}"),
    ("doctor", "{data}"),
    ("plan", "{data}", "--any-clock"),
    ("explain", "{data}", "t-0"),
    ("recover", "{data}"),
    ("run", "{data}", "--any-clock", "--dry-run"),
    ("run", "{data}", "--any-clock", "--set", "min.cleanable.dirty.ratio=0"),
)


def broker_dir(root: Path) -> Path:
    """A log directory of a KRaft broker that stopped cleanly, with a log t-0."""
    data = root / "data"
    build(data, Shape("t"))
    identify(data, 1, B)
    partition_metadata.write(str(data / "t-0" / PARTITION_METADATA), PartitionMetadata(0, A))
    (data / "t-0" / LEADER_EPOCH_CHECKPOINT).write_bytes(b"0\n1\n0 0\n")
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6})
    checkpoint.write(str(data / checkpoint.RECOVERY_POINT), {("t", 0): 6})
    (data / METADATA_DIR).mkdir()
    log(data / METADATA_DIR, 0, batches(0, topic("t", A), partition(0, A), POLICY))
    return data


def put(name: str, data: bytes | None) -> Callable[[Path], None]:
    def damage(log_dir: Path) -> None:
        if data is None:
            (log_dir / name).unlink()
        else:
            (log_dir / name).write_bytes(data)

    return damage


EPOCHS, METADATA = f"t-0/{LEADER_EPOCH_CHECKPOINT}", f"t-0/{PARTITION_METADATA}"
DAMAGES = {
    "epochs of NULs": (put(EPOCHS, bytes(4096)), EPOCHS, f"rm -- .*{EPOCHS}"),
    "half an epoch file": (put(EPOCHS, b"0\n2\n0 0\n"), EPOCHS, f"rm -- .*{EPOCHS}"),
    "an epoch below 0": (put(EPOCHS, b"0\n1\n-1 0\n"), EPOCHS, f"rm -- .*{EPOCHS}"),
    "an epoch from below 0": (put(EPOCHS, b"0\n1\n0 -7\n"), EPOCHS, f"rm -- .*{EPOCHS}"),
    "no topic id": (put(METADATA, None), METADATA, rf"printf '.*' {ID} > .*{METADATA}"),
    "an empty topic id": (put(METADATA, b""), METADATA, rf"printf '.*' {ID} > .*{METADATA}"),
    "a version alone": (
        put(METADATA, b"version: 0"),
        METADATA,
        rf"printf '.*' {ID} > .*{METADATA}",
    ),
    "a blank topic id": (
        put(METADATA, b"version: 0\ntopic_id: "),
        METADATA,
        rf"printf '.*' {ID} > .*{METADATA}",
    ),
    "a topic id of NULs": (put(METADATA, bytes(43)), METADATA, rf"printf '.*' {ID} > .*{METADATA}"),
    **{
        name: (put(name, bytes(20)), name, f"truncate -s 0 .*{name}")
        for name in (
            checkpoint.RECOVERY_POINT,
            checkpoint.LOG_START,
            checkpoint.REPLICATION,
            checkpoint.CLEANER_OFFSET,
        )
    },
}


def shown_of(data: Path, words: tuple[str, ...]) -> str:
    found = run_command(*(word.format(data=data) for word in words))
    return " ".join((found.out + found.error).split())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", DAMAGES)
def test_no_command_recommends_a_start_that_fails_or_loses_a_log(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    damage, file, _ = DAMAGES[name]
    data = broker_dir(tmp_path)
    damage(data)
    shown = shown_of(data, words)
    assert "tart the broker" not in shown.replace("Start no broker", "")
    assert file in shown.replace(" ", ""), shown  # a narrow table breaks it


@pytest.mark.parametrize("name", DAMAGES)
def test_the_smallest_repair_is_a_command_after_which_a_start_goes_well(
    tmp_path: Path, name: str
) -> None:
    damage, _, command = DAMAGES[name]
    data = broker_dir(tmp_path)
    damage(data)
    (problem,) = api.start_problems([str(data)])
    assert problem.command is not None
    assert re.fullmatch(command, problem.command)
    subprocess.run(["/bin/sh", "-c", problem.command], check=True)
    assert api.start_problems([str(data)]) == ()
    assert "Next: start the broker, or compact first:" in shown_of(data, ("recover", "{data}"))


def test_a_log_directory_in_good_order_has_no_problem(tmp_path: Path) -> None:
    data = broker_dir(tmp_path)
    assert api.start_problems([str(data)]) == ()
    assert "Next: start the broker." in shown_of(data, COMMANDS[-1])


def test_the_id_of_a_topic_stands_in_another_partition_too(tmp_path: Path) -> None:
    """Where the metadata log is in a directory that is not given."""
    data = tmp_path / "data"
    build(data, Shape("t"), Shape("t", 1))
    identify(data, 1, B)
    partition_metadata.write(str(data / "t-1" / PARTITION_METADATA), PartitionMetadata(0, A))
    (data / "t-0" / PARTITION_METADATA).unlink()
    (problem,) = api.start_problems([str(data)])
    assert problem.outcome is StartOutcome.LOG_EMPTIED
    assert f"topic_id: {ID}, as another partition of its topic says" in problem.repair


def test_one_log_in_two_directories_keeps_a_broker_from_starting_unless_one_is_a_stray(
    tmp_path: Path,
) -> None:
    data, other = broker_dir(tmp_path), tmp_path / "other"
    build(other, Shape("t"))
    identify(other, 1, UUID(int=7 << 64 | 8))
    log_dirs = [str(data), str(other)]
    metadata = other / "t-0" / PARTITION_METADATA
    partition_metadata.write(str(metadata), PartitionMetadata(0, A))
    found = api.start_problems(log_dirs)
    assert {problem.outcome for problem in found} == {StartOutcome.BROKER_ENDS}
    assert [problem.path for problem in found] == [str(data / "t-0"), str(other / "t-0")]
    partition_metadata.write(str(metadata), PartitionMetadata(0, B))
    (stray,) = api.start_problems(log_dirs)
    assert (stray.path, stray.outcome) == (str(other / "t-0"), StartOutcome.LOG_SET_ASIDE)
    assert not stray.forbids_start


def test_the_problems_are_in_the_json_of_each_command_that_may_recommend_a_start(
    tmp_path: Path,
) -> None:
    data = broker_dir(tmp_path)
    put(EPOCHS, bytes(20))(data)
    for words in COMMANDS[2:]:
        found = run_command(*(word.format(data=data) for word in words), "--format", "json")
        (problem,) = json.loads(found.out)["start_problems"]
        assert problem["outcome"] == "directory-offline"
        assert problem["path"] == str(data / EPOCHS)
        assert problem["forbids_start"]


def test_one_directory_may_be_given_by_itself(tmp_path: Path) -> None:
    """As a string it would else be read letter by letter, of which `/` is a directory."""
    data = broker_dir(tmp_path)
    put(EPOCHS, bytes(4096))(data)
    (problem,) = api.start_problems(str(data))
    assert problem.path == str(data / EPOCHS)
    assert api.start_problems(data) == (problem,)
    with pytest.raises(api.UsageError, match="there is no such directory"):
        api.start_problems(tmp_path / "nowhere")


@pytest.mark.parametrize("damage", [b"", b"version: 0", b"version: 0\ntopic_id: "])
def test_explain_advises_the_smallest_repair_of_what_sets_a_log_aside(
    tmp_path: Path, damage: bytes
) -> None:
    """It said to remove the directory of the log."""
    data = broker_dir(tmp_path)
    (data / METADATA).write_bytes(damage)
    found = api.explain([str(data)], "t-0", api.Rules(any_clock=True))
    assert found.reason_code == "damaged"
    assert found.remedy is not None
    assert found.remedy.words.startswith("Write two lines into it")
    (command,) = found.remedy.commands
    subprocess.run(["sh", "-c", command], check=True)
    assert partition_metadata.read(str(data / METADATA)).topic_id == A
    assert api.explain([str(data)], "t-0", api.Rules(any_clock=True)).reason_code != "damaged"
