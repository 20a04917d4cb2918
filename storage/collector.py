"""Python's collector of cycles, kept from looking where there is nothing for it to find."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector from looking, over and over, at values that all stay and have no cycles.

    It takes a fifth of the time of a plan over 10,000 logs, or of loading as many.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
