"""Files that are watched: every operation is told, in order, and can be made to fail."""

import pytest

from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import CHANGES, OPERATIONS, SYNCS, Operation, WatchedFiles

PATHS = {"rename": ("/a", "/b"), "link": ("/a", "/c"), "sync_directory": ("/",)}
MORE = {"read_range": (0, 1), "replace_file": (b"x",), "truncate_file": (0,), "set_modified": (7,)}
READS = {"list_directory", "list_names", "look_up", "exists", "is_directory"}
READS |= {"read_bytes", "read_range", "open"}


def test_operations_read_change_or_sync() -> None:
    assert READS | CHANGES | SYNCS == OPERATIONS
    assert len(READS) + len(CHANGES) + len(SYNCS) == len(OPERATIONS)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_each_operation_is_announced_and_then_done(name: str) -> None:
    """Each is told with its paths before anything else is done, and does what it would do."""
    files, plain = MemoryFiles(), MemoryFiles()
    for each in (files, plain):
        each.replace_file("/a", b"abc")
        each.replace_file("/b", b"")
        if name == "remove_directory":
            each.make_directory("/d")
    seen: list[tuple[Operation, bool]] = []
    watched = WatchedFiles(files, lambda done: seen.append((done, files.exists("/b"))))
    paths = PATHS.get(name, ("/" if name.startswith("list") else "/a",))
    if name in ("make_directory", "remove_directory"):
        paths = ("/d",)
    answers = [getattr(each, name)(*paths, *MORE.get(name, ())) for each in (watched, plain)]
    if not name.startswith("open"):
        assert answers[0] == answers[1]
    assert watched.operations == [Operation(name, paths)]
    assert seen == [(Operation(name, paths), True)]
    assert watched.counts == {name: 1}
    assert watched.changes == ([] if name in READS else watched.operations)
    assert files.list_directory("/") == plain.list_directory("/")
