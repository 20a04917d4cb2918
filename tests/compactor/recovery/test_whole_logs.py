"""A log that a broker's start would lose records of: `recover` leaves it alone, and recommends no
start; `doctor` names it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.formats import checkpoint, partition_metadata
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import Shape, build
from tests.storage.log.test_cluster_metadata import A, batches, config, log, topic
from tests.support.file_states import state_of
from tests.support.local_command import run_command

MIDDLE = f"{6:020}"


def gone(log: Path) -> None:
    """The snapshot of its producers is left, which a start would remove."""
    for suffix in (".log", ".index", ".timeindex"):
        (log / f"{MIDDLE}{suffix}").unlink()


def marked_deleted(log: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = log / f"{MIDDLE}{suffix}"
        path.rename(f"{path}.deleted")


def timeless(log: Path) -> None:
    """As a power cut leaves a file that was never written, with a largest time of 1970."""
    for path in log.glob("*.timeindex"):
        path.write_bytes(bytes(12))


HARM = [(gone, "missing behind this segment"), (marked_deleted, "missing behind this segment")]
HARM += [(timeless, "retention of a broker that starts here would believe it")]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("harm", "said"), HARM)
def test_a_log_that_a_start_would_lose_records_of_is_left_as_it_is(
    tmp_path: Path, harm: Callable[[Path], None], said: str, is_clean: bool
) -> None:
    build(tmp_path, Shape(segments=6), Shape("u"))
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(tmp_path / name), {("t", 0): 12, ("u", 0): 6})
    harm(tmp_path / "t-0")
    if not is_clean:
        (tmp_path / CLEAN_SHUTDOWN).unlink()
    before = state_of(tmp_path / "t-0")
    ended = run_command("recover", tmp_path)
    shown = " ".join((ended.out + ended.error).split())
    assert (ended.code, ended.summary["changed"]) == (4, False)
    assert f"t-0 set aside: {tmp_path}/t-0/" in shown
    assert said in shown
    assert "tart the broker" not in shown
    assert state_of(tmp_path / "t-0") == before


@pytest.mark.parametrize("policy", [None, "delete"])
@pytest.mark.parametrize(("harm", "said"), HARM)
def test_doctor_names_such_a_log_whatever_is_known_of_its_policy(
    tmp_path: Path, harm: Callable[[Path], None], said: str, policy: str | None
) -> None:
    data = tmp_path / "data"
    build(data, Shape(segments=6), Shape("u"))
    for name in (checkpoint.RECOVERY_POINT, checkpoint.REPLICATION):
        checkpoint.write(str(data / name), {("t", 0): 12, ("u", 0): 6})
    if policy is not None:
        values = topic("t", A), topic("u", A), config("cleanup.policy", policy)
        (data / METADATA_DIR).mkdir()
        log(data / METADATA_DIR, 0, batches(0, *values))
        for path in (data / "t-0", data / "u-0"):
            partition_metadata.write(str(path / PARTITION_METADATA), PartitionMetadata(0, A))
    assert run_command("doctor", data).code == 0
    harm(data / "t-0")
    ended = run_command("doctor", data)
    shown = " ".join((ended.out + ended.error).split())
    assert ended.code == 4
    assert f"fail logs t-0: {data}/t-0/" in shown
    assert said in shown
    ending = "Something is wrong here, though a run would not end at it: see the line with fail"
    assert ending in shown
    assert ended.summary["run_would_end"]["exit_code"] == 0


def test_a_log_without_an_index_of_times_is_not_such_a_log(tmp_path: Path) -> None:
    """A start makes it anew with the other; and one without entries goes by the file's time."""
    build(tmp_path, Shape(segments=6))
    (tmp_path / "t-0" / f"{0:020}.index").unlink()
    (tmp_path / "t-0" / f"{0:020}.timeindex").write_bytes(bytes(12))
    (tmp_path / "t-0" / f"{2:020}.timeindex").write_bytes(b"")
    assert run_command("recover", tmp_path).code == 0
