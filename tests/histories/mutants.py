"""Defects that there once were, put back: a campaign that finds none of them is worth nothing.

Each is what stands in the place of one judgement of ours, and is otherwise as narrow as it was:
whatever else has been made safe since stays safe.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from unittest import mock

from compactor.log_dirs import survey
from compactor.log_dirs.kept_files import mark_of
from compactor.originals import undo_judgement
from compactor.originals.kept_manifest import KeptStep, LogBefore
from compactor.originals.undo_judgement import ChangedSinceError, check_appended, steps_done
from storage.file_names import LOG, file_name
from storage.formats.partition_metadata import topic_id_of
from storage.log.log_dir import PartitionListing


@contextlib.contextmanager
def moves_unseen() -> Iterator[None]:
    """A log is cleaned although a broker has begun to move it."""
    with mock.patch.object(survey, "moves", lambda _: {}):
        yield


@contextlib.contextmanager
def later_retention_unseen() -> Iterator[None]:
    """A run is undone although more has been deleted from the front since."""

    def is_unnoticed(name: str, live: Set[str], _: bool) -> bool:
        return name < min(live)

    with _undo_that_overlooks(is_unnoticed):
        yield


@contextlib.contextmanager
def topic_id_unread() -> Iterator[None]:
    """A topic of the same name is taken for the same, and judged by what the run touched."""
    with (
        mock.patch.object(undo_judgement, "_check_topic_id", lambda *_: None),
        _undo_that_overlooks(lambda _, __, is_another: is_another, checks_appended=_of_the_same),
    ):
        yield


@contextlib.contextmanager
def later_cleaning_unseen() -> Iterator[None]:
    """Of what the run did not touch the cleaner checkpoint tells alone."""

    def is_unnoticed(name: str, live: Set[str], _: bool) -> bool:
        return name >= min(live)

    with _undo_that_overlooks(is_unnoticed, checks_appended=lambda *_: False):
        yield


MUTANTS: Mapping[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "moves between directories ignored": moves_unseen,
    "undone over later retention": later_retention_unseen,
    "topic id ignored": topic_id_unread,
    "cleaned since, by the checkpoint alone": later_cleaning_unseen,
}


def _of_the_same(path: str, before: LogBefore) -> bool:
    return topic_id_of(path) == before.topic_id


@contextlib.contextmanager
def _undo_that_overlooks(
    is_unnoticed: Callable[[str, Set[str], bool], bool],
    checks_appended: Callable[[str, LogBefore], bool] = lambda *_: True,
) -> Iterator[None]:
    """is_unnoticed: whether a file that no step of the run tells of is not looked at, by its name,
    the names that are there, and whether the topic has another id than before.
    """

    def judged(before: LogBefore, steps: Sequence[KeptStep], listing: PartitionListing) -> int:
        is_another = not _of_the_same(listing.path, before)
        live = {file_name(segment.base_offset, LOG) for segment in listing.segments}
        told = {mark.name for step in steps for mark in (*step.originals, *step.put)}
        active = before.segments[-1]

        def counts(name: str) -> bool:
            return name in told or not is_unnoticed(name, live, is_another)

        found = {
            name: mark_of(
                listing.access,
                f"{listing.path}/{name}",
                up_to=active.size_bytes if name == active.name else 1 << 62,
            )
            for name in live
            if name <= active.name and counts(name)
        }
        seen = before._replace(segments=tuple(m for m in before.segments if counts(m.name)))
        done = steps_done(found, seen, steps, lambda mark: mark)
        if done is None:
            raise ChangedSinceError("changed since")
        return done

    def appended(listing: PartitionListing, before: LogBefore) -> None:
        if checks_appended(listing.path, before):
            check_appended(listing, before)

    with (
        mock.patch.object(undo_judgement, "_steps_done", judged),
        mock.patch.object(undo_judgement, "check_appended", appended),
    ):
        yield
