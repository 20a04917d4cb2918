"""C-15.1: the steps of a swap, as data.

Those of a round stand in tests/compactor/test_finalizer.py, those that settle a swap in
tests/compactor/recovery/test_leftovers.py.
"""

from collections.abc import Sequence
from pathlib import Path

from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.files.local import LOCAL
from storage.log.swap import Action, Step, apply_steps, plan_swap

ALL = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def short(steps: Sequence[Step]) -> list[str]:
    """As `rename 4.log 4.log.swap`."""
    return [" ".join(part for part in map(_short, step) if part) for step in steps]


def _short(name: str) -> str:
    return str(int(name[:20])) + name[20:] if name[:20].isdigit() else name


def staged(base_offset: int, *kinds: str) -> dict[str, str]:
    return {kind: file_name(base_offset, kind) + ".cleaned" for kind in kinds}


def test_what_is_replaced_in_a_log_in_use_is_kept_for_those_who_read_it() -> None:
    """Of what lies behind the range each `.log` is away before its indexes are."""
    new = {0: {LOG: "there.log", INDEX: "there.index"}}
    plan = plan_swap({0: ALL, 5: (LOG, INDEX)}, new, 5, keeps_sources=True)
    assert short(plan.stage) == [
        "rename there.index 0.index.cleaned",
        "rename there.log 0.log.cleaned",
        "sync",
    ]
    assert short(plan.complete) == [
        "rename 0.log.cleaned 0.log.swap",
        "rename 0.index.cleaned 0.index.swap",
        "sync",
    ]
    assert short(plan.replace) == [
        *(f"rename 0{kind} 0{kind}.deleted" for kind in ALL),
        "rename 5.log 5.log.deleted",
        "sync",
        "rename 5.index 5.index.deleted",
        "sync",
    ]
    assert short(plan.name) == [
        "rename 0.log.swap 0.log",
        "sync",
        "rename 0.index.swap 0.index",
        "sync",
    ]


def test_a_segment_that_is_split_behind_its_base_is_stood_in_for() -> None:
    plan = plan_swap({0: (LOG,)}, {5: staged(5, LOG), 9: staged(9, LOG)}, 12)
    stand_in = ["0.timeindex", "0.index", "0.log"]
    assert short(plan.stage) == [*(f"create {name}.cleaned" for name in stand_in), "sync"]
    rising = [f"rename {n}.cleaned {n}.swap" for n in ("0.log", "0.index", "0.timeindex")]
    assert short(plan.complete) == [
        "rename 9.log.cleaned 9.log.swap",
        "rename 5.log.cleaned 5.log.swap",
        "sync",
        *rising,
        "sync",
    ]
    assert short(plan.name)[:4] == [
        "remove 0.log.swap",
        "sync",
        "remove 0.index.swap",
        "remove 0.timeindex.swap",
    ]


def test_an_index_of_aborted_transactions_is_stood_in_for_beside_an_empty_segment_alone() -> None:
    created = Step(Action.CREATE, file_name(0, TXN_INDEX) + ".cleaned")
    for end_offset, kinds, new_kinds, stands_in in (
        (0, ALL, (LOG,), True),
        (0, (LOG,), (LOG,), False),
        (0, ALL, (LOG, TXN_INDEX), False),
        (3, ALL, (LOG,), False),
    ):
        plan = plan_swap({0: kinds}, {0: staged(0, *new_kinds)}, end_offset)
        assert (created in plan.stage) == stands_in


def test_what_stands_in_is_empty(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"left by a cleaner")
    apply_steps(LOCAL, str(tmp_path), [Step(Action.CREATE, "name"), Step(Action.SYNC)])
    assert (tmp_path / "name").read_bytes() == b""


def test_removals_that_follow_one_another_are_given_together(tmp_path: Path) -> None:
    steps = [Step(Action.REMOVE, "a"), Step(Action.REMOVE, "b"), Step(Action.SYNC)]
    given: list[Sequence[str]] = []
    apply_steps(LOCAL, str(tmp_path), [*steps, Step(Action.REMOVE, "c")], given.append)
    assert given == [[str(tmp_path / name) for name in names] for names in ("ab", "c")]
