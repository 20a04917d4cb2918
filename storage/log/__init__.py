"""One Kafka log: its listing, segments, batches, producers, loading, appends, reads, retention.

`Log` puts them together; `LogManager` keeps many logs in several directories."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.log.log import Log as Log
    from storage.log.log import LogOptions as LogOptions
    from storage.log.log_config import LogConfig as LogConfig
    from storage.log.manager.log_manager import LogManager as LogManager
    from storage.log.manager.log_manager import ManagerOptions as ManagerOptions

_ROOMS = {
    "Log": "storage.log.log",
    "LogOptions": "storage.log.log",
    "LogConfig": "storage.log.log_config",
    "LogManager": "storage.log.manager.log_manager",
    "ManagerOptions": "storage.log.manager.log_manager",
}
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> Any:
    """Load the engine when it is first asked for: a listing has no need of it."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
