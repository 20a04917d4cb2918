"""Kept histories, told again without Kafka; the campaign tries what it says that it does."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.file_names import SWAP
from storage.formats import checkpoint
from tests.disturbed.scenes import CLEANED, Place
from tests.histories import generator, kept_cases, our_commands, script
from tests.histories.cuts import Cuts, Limits
from tests.histories.mutants import MUTANTS
from tests.histories.script import Script
from tests.histories.shrink import shrunk
from tests.histories.themes import PLAIN

CASES = {path.stem: path for path in kept_cases.scripts()}
DEFECTS = {
    "moved_while_cleaned": "moves between directories ignored",
    "undone_over_later_retention": "undone over later retention",
    "undone_in_another_topic": "topic id ignored",
    "undone_over_later_cleanings": "cleaned since, by the checkpoint alone",
}


@pytest.mark.parametrize("name", CASES)
def test_a_kept_history_goes_as_kafka_saw_it(name: str, tmp_path: Path) -> None:
    assert kept_cases.replay(CASES[name], tmp_path / "root") == []


@pytest.mark.parametrize(("name", "defect"), DEFECTS.items())
def test_a_defect_that_is_put_back_is_found(name: str, defect: str, tmp_path: Path) -> None:
    with MUTANTS[defect]():
        problems = kept_cases.replay(CASES[name], tmp_path / "root")
    assert len(problems) == 1
    assert "finds other files than were recorded" in problems[0]


def test_the_same_number_is_the_same_history() -> None:
    assert generator.batch_of(3, 5) == generator.batch_of(3, 5)
    assert generator.batch_of(3, 5)[:2] == generator.batch_of(3, 2)
    assert generator.batch_of(3, 1) != generator.batch_of(4, 1)


def test_all_of_a_batch_share_what_is_common() -> None:
    for number in range(20):
        first, *others = generator.batch_of(number, 10)
        assert all(other.common() == first.common() for other in others)


def test_everything_that_can_happen_happens_often() -> None:
    counts = Counter(
        happened
        for number in range(40)
        for one in generator.batch_of(number, 5)
        for happened in _happenings(one)
    )
    expected = {"run", "recover", "plan", "undo", "discard", "verify", "tamper"}
    expected |= {"kill of ours", "kill of a broker", *PLAIN, "end", "new_epoch", "delete", "copy"}
    expected |= {"start_move", "finish_move", "cancel_move"}
    expected -= {"move", "recreate"}  # words for several operations
    expected |= {"run on local", "run on spark"}
    assert {what: counts[what] for what in expected if counts[what] < 5} == {}


def _happenings(one: Script) -> Iterator[str]:
    for step in one.steps:
        yield step["do"]
        if "engine" in step:
            yield f"run on {step['engine']}"
        if "kill" in step or "moment" in step:
            yield "kill of ours"
        if step.get("stop") == "kill":
            yield "kill of a broker"
        for turn in step.get("turns", ()):
            yield from (operation["op"] for operation in turn)


def test_a_script_is_the_same_when_it_was_written_and_read() -> None:
    one = generator.batch_of(1, 1)[0]
    assert script.from_text(one.name, script.to_text(one)) == one


def test_a_history_is_shortened_to_what_makes_it_go_wrong() -> None:
    """Here: a roll, and a later run that keeps what it replaces."""

    def goes_wrong(one: Script) -> bool:
        happened = [what for step in one.steps for what in _rolls_and_runs(step)]
        return "roll" in happened and "run" in happened[happened.index("roll") :]

    long = next(s for n in range(50) for s in generator.batch_of(n, 1) if goes_wrong(s))
    short = shrunk(long, goes_wrong)
    assert [step["do"] for step in short.steps] == ["broker", "run"]
    assert short.steps[0]["turns"] == [[{"op": "roll"}]]
    assert short.steps[0]["stop"] == "clean"
    assert not short.steps[1].get("kill")


def _rolls_and_runs(step: script.Step) -> Iterator[str]:
    if step["do"] == "run" and step["keep"]:
        yield "run"
    for turn in step.get("turns", ()):
        yield from (operation["op"] for operation in turn if operation["op"] == "roll")


def test_a_kill_may_find_a_log_in_the_middle_of_its_swap(tmp_path: Path) -> None:
    """Also where names are given relative to the directory that is held."""
    place = Place(tmp_path)
    place.logs.mkdir()
    CLEANED.build(place)
    limits = Limits(by_log={"orders-0": 20}, ends_at=checkpoint.CLEANER_OFFSET)
    cuts = Cuts([place.logs], tmp_path / "trash", limits)
    words = list(map(str, CLEANED.words(place)))
    del words[words.index("--format") :]
    with our_commands.local_rounds(place.work):
        our_commands.carry_out(words, cuts)
    assert (cuts.happened, cuts.stopped_logs) == (True, 1)
    assert list((place.logs / "orders-0").glob(f"*{SWAP}"))
    assert not (place.logs / checkpoint.CLEANER_OFFSET).exists()
