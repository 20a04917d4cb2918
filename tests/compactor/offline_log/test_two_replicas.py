"""Why `--only-replica` is asked for: two replicas that differ, and nothing by which brokers see it.

A follower asks its leader where the leader epoch of its last record ends, and cuts off what is
beyond (KIP-101). Both replicas here give the same answer, and so both keep what they have.
"""

from pathlib import Path
from typing import Any

from compactor import api
from storage.files.local import LOCAL
from tests.compactor.offline_log.made_logs import CLOCK_MS, SMALL, Line, make
from tests.engine.replay.replayed import replayed

NAME = "orders-0"
OPTIONS = api.ChangeOptions(
    rules=api.Rules(as_of=CLOCK_MS, any_clock=True), only_replica=True
)  # what is said here is not true
ON_THE_LEADER: Line = {
    "op": "append", "leader_epoch": 5, "records": [{"k": "a", "v": "of the leader"}],
}  # fmt: skip


def records(log_dir: Path) -> dict[int, bytes | None]:
    read = api.log_read(str(log_dir), NAME)
    return {record.offset: record.value for some in read for record in some}


def what_a_follower_compares(log_dir: Path) -> tuple[Any, ...]:
    found = api.log_offsets(str(log_dir), NAME)
    return found.epochs, found.log_end


def test_replicas_differ_and_look_the_same(tmp_path: Path) -> None:
    changed = make(tmp_path / "changed")
    other = make(tmp_path / "other", [*SMALL, ON_THE_LEADER])  # it went on while that was offline
    api.log_append(str(changed), NAME, [api.NewRecord(b"a", b"of the tool")], options=OPTIONS)
    assert what_a_follower_compares(changed) == what_a_follower_compares(other)
    ours, theirs = records(changed), records(other)
    assert (ours.pop(10), theirs.pop(10)) == (b"of the tool", b"of the leader")
    assert ours == theirs


def test_the_next_leader_does_not_notice_it_either(tmp_path: Path) -> None:
    """It appends in a new epoch, and the follower goes on behind what it has."""
    changed, other = make(tmp_path / "changed"), make(tmp_path / "other", [*SMALL, ON_THE_LEADER])
    api.log_append(str(changed), NAME, [api.NewRecord(b"a", b"of the tool")], options=OPTIONS)
    news: Line = {"op": "append", "leader_epoch": 6, "records": [{"k": "b", "v": "later"}]}
    for log_dir in (changed, other):
        script = [SMALL[0], {"op": "open"}, news, {"op": "close"}]
        told = replayed(LOCAL, str(log_dir), script)
        assert told[2]["result"]["first_offset"] == 11
    assert what_a_follower_compares(changed) == what_a_follower_compares(other)
    assert records(changed)[10] != records(other)[10]
    assert records(changed)[11] == records(other)[11] == b"later"
