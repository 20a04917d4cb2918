"""Values that travel, made of what a test is about; all else in them is nothing."""

from typing import Any, get_type_hints

from cleaner_jobs.messages import Part, Rewritten, Source, Stretch

_NOTHING: dict[Any, Any] = {int: 0, bool: False, str: ""}


def _nothing_in(row: type[Part] | type[Rewritten]) -> dict[str, Any]:
    """Its fields that are numbers or texts, by name."""
    return {n: _NOTHING[kind] for n, kind in get_type_hints(row).items() if kind in _NOTHING}


def part(**values: Any) -> Part:
    return Part(**_nothing_in(Part) | {"file": "f", "sections": ()} | values)


def rewritten(**values: Any) -> Rewritten:
    return Rewritten(**_nothing_in(Rewritten) | values)


def stretch(source: Source, start: int, end: int, **values: Any) -> Stretch:
    """Of the first segment of the first group of log 0, all of it dirty."""
    whole = Stretch(
        log_id=0,
        group=0,
        segment=0,
        start=start,
        end=end,
        source=source,
        first_dirty_offset=0,
        map_end_offset=2**62,
        hash_partition_bits=0,
    )
    return whole._replace(**values)
