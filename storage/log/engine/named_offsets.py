"""The offset that a file of a log is named by (F-2.5)."""

from storage.file_names import offset_of
from storage.log.engine.errors import NumberFormatError


def required_offset(name: str) -> int:
    """Give the offset before the first dot; NumberFormatError where there is none."""
    offset = offset_of(name)
    if offset is None:
        raise NumberFormatError(f"{name} does not begin with an offset")
    return offset
