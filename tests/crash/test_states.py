"""Which states a crash can leave: counted by hand for a few operations."""

from collections.abc import Sequence

from tests.crash.operations import (
    Content,
    Create,
    Operation,
    Place,
    Record,
    Rename,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)
from tests.crash.states import crash_states, kill_states

LOG, SWAP, GONE = Place("t-0", "log"), Place("t-0", "log.swap"), Place("t-0", "log.deleted")
NEW = Place("", "new")


def found(operations: Sequence[Operation], names: dict[Place, int]) -> list[dict[str, bytes]]:
    """By the names' strings, each state once; those of files that nobody knows aside."""
    contents = {file: Content(b"%d" % file, 0) for file in names.values()}
    states = crash_states(Record(names, contents, list(operations)))
    return [
        {str(place): content.data for place, content in state.files.items()} for state in states
    ]


def test_of_two_renames_either_may_be_lost() -> None:
    """The second writes over what the first has not moved away: then file 0 has no name."""
    states = found([Rename(LOG, GONE, 0), Rename(SWAP, LOG, 1)], {LOG: 0, SWAP: 1})
    old, new = b"0", b"1"
    assert len(states) == 4
    for state in (
        {"t-0/log": old, "t-0/log.swap": new},
        {"t-0/log.deleted": old, "t-0/log.swap": new},
        {"t-0/log": new},
        {"t-0/log.deleted": old, "t-0/log": new},
    ):
        assert state in states


def test_what_was_synced_is_not_lost() -> None:
    operations: list[Operation] = [
        Rename(LOG, GONE, 0),
        SyncDirectory("t-0"),
        Rename(SWAP, LOG, 1),
    ]
    states = found(operations, {LOG: 0, SWAP: 1})
    assert {"t-0/log": b"1"} not in states
    assert len(states) == 3


def test_a_sync_of_another_directory_says_nothing() -> None:
    operations: list[Operation] = [Rename(LOG, GONE, 0), SyncDirectory(""), Unlink(SWAP, 1)]
    assert {"t-0/log": b"0"} in found(operations, {LOG: 0, SWAP: 1})


def test_a_rename_does_not_happen_without_an_earlier_one_of_its_file() -> None:
    operations = [Rename(SWAP, GONE, 0), Rename(GONE, LOG, 0)]
    assert found(operations, {SWAP: 0}) == [
        {"t-0/log.swap": b"0"},
        {"t-0/log.deleted": b"0"},
        {"t-0/log": b"0"},
    ]


def test_unsynced_bytes_are_lost_torn_or_zeros() -> None:
    data = b"abcdef"
    states = found([Create(NEW, 1), Write(1, Content(data, 0))], {LOG: 0})
    assert [state.get("new") for state in states] == [
        None,
        b"",
        data,
        b"a",
        b"a\0\0\0\0\0",
        b"ab",
        b"ab\0\0\0\0",
        b"abcde",
        b"abcde\0",
        b"\0\0\0\0\0\0",
    ]


def test_synced_bytes_are_there_if_their_name_is() -> None:
    operations: list[Operation] = [Create(NEW, 1), Write(1, Content(b"abcdef", 0)), Sync(1)]
    after = found([*operations, Unlink(LOG, 0)], {LOG: 0})
    assert {state.get("new") for state in after if "t-0/log" not in state} == {None, b"abcdef"}


def test_a_kill_leaves_everything() -> None:
    record = Record({LOG: 0}, {0: Content(b"0", 0)}, [Create(NEW, 1), Write(1, Content(b"x", 0))])
    assert [
        {str(place): content.data for place, content in state.files.items()}
        for state in kill_states(record)
    ] == [{"t-0/log": b"0"}, {"t-0/log": b"0", "new": b""}, {"t-0/log": b"0", "new": b"x"}]


def test_many_operations_are_sampled_the_same_way_each_time() -> None:
    names = {Place("t-0", str(i)): i for i in range(9)}
    removed: list[Operation] = [Unlink(place, file) for place, file in names.items()]
    states = found(removed, names)
    assert states == found(removed, names)
    kept = {frozenset(state) for state in states}
    assert all(frozenset({f"t-0/{i}"}) in kept for i in range(9))  # each single one lost
    assert all(frozenset(set(map(str, names)) - {f"t-0/{i}"}) in kept for i in range(9))
