"""Mounts that nobody else sees, for tests that need a small disk or a directory at two places.

They live in a mount namespace of a process of its own. Where the system permits none, a test that
needs one fails: there it cannot say anything.
"""

import os
import subprocess
import sys
from collections.abc import Sequence


def python_with_mounts(
    mounts: Sequence[str], code: str, *arguments: object
) -> subprocess.CompletedProcess[str]:
    """Run Python code where these words of mount(8) have been carried out."""
    namespace = ["unshare", "--mount"]
    if os.geteuid() != 0:
        namespace += ["--user", "--map-root-user"]
    set_up = "".join(f"mount {words} && " for words in mounts)
    command = [*namespace, "sh", "-c", f'{set_up}exec "$@"', "sh"]
    command += [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "unshare:" not in done.stderr and "mount:" not in done.stderr, done.stderr
    return done
