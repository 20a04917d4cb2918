"""The old place of `ManualScheduler`: import it from `compactor`."""

import warnings
from typing import Any

from storage.log import scheduler


def __getattr__(name: str) -> Any:
    value = getattr(scheduler, name)
    warnings.warn(
        f"{__name__}.{name} has moved: from compactor import {name}",
        DeprecationWarning,
        stacklevel=2,
    )
    return value
