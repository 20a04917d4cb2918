"""What a listener is told, and the note of an error that says what was changed."""

import pytest

from compactor.api.progress import (
    Event,
    Listener,
    Progress,
    note_changes,
    watch_changes,
    what_was_changed,
)


def test_each_event_says_how_far_the_call_is() -> None:
    heard: list[Progress] = []
    listener = Listener(heard.append)
    listener.stage("rewrite", 100)
    listener.advance(40)
    listener.swapped(1)
    listener.message("careful")
    listener.stage("swap", 3)
    assert heard == [
        Progress(Event.STAGE, "rewrite", 0, 100),
        Progress(Event.ADVANCE, "rewrite", 40, 100),
        Progress(Event.SWAPPED, "rewrite", 40, 100, 1),
        Progress(Event.MESSAGE, "rewrite", 40, 100, 1, "careful"),
        Progress(Event.STAGE, "swap", 0, 3, 1),
    ]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_ends_a_call_says_what_was_changed(error: BaseException) -> None:
    error.add_note("of somebody else")
    with pytest.raises(type(error)) as raised, watch_changes(None) as progress:
        progress.swapped(2)
        raise error
    assert raised.value is error
    told = "2 groups of segments had been swapped in and stay"
    assert (what_was_changed(error) or "").startswith(told)


@pytest.mark.parametrize("groups", [0, 2])
def test_what_may_be_left_staged_is_told(groups: int) -> None:
    error = OSError("of the disk")
    with pytest.raises(OSError), watch_changes(None) as progress:
        if groups:
            progress.swapped(groups)
        progress.staged_is_left = True
        raise error
    told = what_was_changed(error) or ""
    assert "staged" in told.lower() and "the next run removes" in told
    assert progress.has_changed


def test_notes_of_others_say_nothing_of_it() -> None:
    error = ValueError()
    assert what_was_changed(error) is None
    error.add_note("of somebody else")
    assert what_was_changed(error) is None
    note_changes(error, "first")
    note_changes(error, "then")
    error.add_note("of somebody else")
    assert what_was_changed(error) == "then"
