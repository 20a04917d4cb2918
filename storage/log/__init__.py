"""A log of segments: listing, reading, writing, producers, recovery; and `Log`, the engine."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.log.engine.log import Log as Log
    from storage.log.engine.log import LogOptions as LogOptions

_NAMES = ("Log", "LogOptions")


def __getattr__(name: str) -> Any:
    """Load the engine when it is first asked for: a listing has no need of it."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from storage.log.engine import log

    return getattr(log, name)
