"""`doctor`: whether this machine, and log directories on it, are fit for a run. Reads only."""

import os
from collections.abc import Sequence

from compactor.api import places
from compactor.directory_state import require_may_change
from compactor.doctor.checks import Check, Checkup, fail
from compactor.doctor.log_dirs import log_dir_checks
from compactor.doctor.machine import machine_checks
from compactor.doctor.spark_parts import spark_checks
from compactor.errors import ConfigError, RefusedError
from compactor.exit_codes import error_line
from compactor.host.clock import now_ms
from storage.errors import UnsupportedBackendError


def doctor(log_dirs: Sequence[str] = (), start_spark: bool = False) -> Checkup:
    """Look at whatever a run needs. What is wrong is a check of its own, and never raised.

    start_spark: also start Spark, and let it do one small job.
    """
    machine = (*machine_checks(os.environ), *spark_checks(os.environ, start_spark))
    return Checkup(machine, tuple((path, _of_log_dir(path)) for path in log_dirs))


def _of_log_dir(path: str) -> tuple[Check, ...]:
    try:
        (local,) = places.log_dirs([path], to_write=False)
        require_may_change(local)
        return tuple(log_dir_checks(local, now_ms()))
    except (ConfigError, RefusedError, UnsupportedBackendError, OSError) as error:
        return (fail("log directory", error_line(error)),)
