"""One Kafka log: its listing, segments, batches, producers, loading, appends, reads, retention.

`Log` puts them together; `LogManager` keeps many logs in several directories. Programs take these
names from `compactor`; here they are left for programs that were written before.
"""

from typing import TYPE_CHECKING

from storage.old_names import old_names

if TYPE_CHECKING:
    from storage.log.loading import LogOptions as LogOptions
    from storage.log.log import Log as Log
    from storage.log.log_config import LogConfig as LogConfig
    from storage.log.log_manager import LogManager as LogManager
    from storage.log.manager_options import ManagerOptions as ManagerOptions

_MODULES = {
    "Log": "storage.log.log",
    "LogConfig": "storage.log.log_config",
    "LogManager": "storage.log.log_manager",
    "LogOptions": "storage.log.loading",
    "ManagerOptions": "storage.log.manager_options",
}
__all__ = list(_MODULES)
__getattr__ = old_names(__name__, _MODULES)
