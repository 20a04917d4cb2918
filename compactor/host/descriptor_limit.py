"""How many files may be open at once (`ulimit -n`): raised as far as it may be, then looked at.

Java has each of Spark's jars open, some 300, and where it meets the limit it reports something
else: a missing logging provider, a calendar that cannot be read.
"""

import contextlib
import resource

from compactor.errors import RefusedError
from compactor.reason_codes import ReasonCode

FEWEST = 1024  # with 300 a session of two cores did not start, with 400 it did


def raise_limit() -> None:
    """Up to the hard limit, for this process and those that it starts. It may not be allowed to."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # then the limit is what it was
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limit() -> int | None:
    """How many may be open now; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def require_enough() -> None:
    """Raise RefusedError where Spark would fail for want of them."""
    found = limit()
    if found is not None and found < FEWEST:
        raise RefusedError(
            f"no more than {found:,} files may be open at once (ulimit -n), and a run with Spark "
            f"needs {FEWEST:,}",
            ReasonCode.TOO_FEW_OPEN_FILES,
            remedy="Raise the hard limit where it is started: ulimit -n 4096 as root, "
            "LimitNOFILE=4096 in a unit of systemd, nofile in /etc/security/limits.conf. "
            "Nothing was changed",
        )
