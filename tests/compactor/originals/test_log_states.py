"""The states that a run takes a log through, each recognised by its files alone."""

import pytest

from compactor.log_dirs.kept_files import FileMark
from compactor.originals.kept_manifest import KeptStep, LogBefore
from compactor.originals.undo_judgement import difference, left_by, steps_done


def log(base_offset: int, checksum: str, size_bytes: int = 100) -> FileMark:
    return FileMark(f"{base_offset:020d}.log", size_bytes, checksum)


A, B, C, MERGED = log(0, "a"), log(10, "b"), log(20, "c"), log(0, "ab", 150)
A_INDEX = FileMark(f"{0:020d}.index", 8, "i")
BEFORE = LogBefore(None, (A, B, C), 30, None, None)
CLEANED = KeptStep(1, originals=(A, A_INDEX, B), put=(MERGED,), cleaned_to=20)
DELETED = KeptStep(2, originals=(MERGED,), put=(), cleaned_to=20, deleted_up_to=20)
STEPS = (CLEANED, DELETED)


def by_name(*marks: FileMark) -> dict[str, FileMark]:
    return {mark.name: mark for mark in marks}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((), (A, B, C)), ((CLEANED,), (MERGED, C)), (STEPS, (C,))],
    ids=["none", "a swap", "and retention"],
)
def test_what_steps_leave(steps: tuple[KeptStep, ...], expected: tuple[FileMark, ...]) -> None:
    assert left_by(BEFORE, steps) == by_name(*expected)


@pytest.mark.parametrize(
    ("found", "done"),
    [
        ((A, B, C), 0),
        ((MERGED, C), 1),
        ((C,), 2),
        ((MERGED, B, C), 1),  # a swap that recovery settled has left its last source
        ((MERGED, B), None),
        ((A, C), None),
        ((MERGED, log(20, "d")), None),
        ((log(0, "x", 150), C), None),
        ((MERGED, C, log(30, "e")), None),
        ((), None),
    ],
)
def test_how_many_steps_are_in_a_log(found: tuple[FileMark, ...], done: int | None) -> None:
    assert steps_done(by_name(*found), BEFORE, STEPS, lambda mark: mark) == done


def test_a_log_may_be_recognised_by_sizes_alone() -> None:
    sizes = {mark.name: mark.size_bytes for mark in (log(0, "other bytes", 150), C)}
    assert steps_done(sizes, BEFORE, STEPS, lambda mark: mark.size_bytes) == 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((C,), "which the run left, is gone: deleted or cleaned again"),
        ((MERGED, B, C), "which the run removed, is there again"),
        ((MERGED, log(15, "x"), C), "which the run did not leave there"),
        ((log(0, "ab", 151), C), "has 151 bytes, the run left 150"),
        ((log(0, "xx", 150), C), "has other bytes than those that the run left"),
    ],
)
def test_the_first_difference_is_put_into_words(found: tuple[FileMark, ...], said: str) -> None:
    left = left_by(BEFORE, (CLEANED,))
    assert said in difference(by_name(*found), left, {A.name, B.name})
