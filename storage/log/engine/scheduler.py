"""The old place of `ManualScheduler`: import it from `compactor`."""

from storage.old_names import old_names

_NOW = "storage.log.scheduler"
__getattr__ = old_names(__name__, {"ManualScheduler": _NOW})
