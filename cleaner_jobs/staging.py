"""Names of what a run leaves in a partition directory before it is swapped in.

A broker that starts ignores such a file (log-format F-2.5), and it is on the right file system.
"""

STAGED_MARKER = ".compactor-"  # in the name of every staged file


def staged_suffix(run_id: str, attempt: str) -> str:
    """Return what follows a segment file's name; attempt is unique among the run's tasks."""
    return f"{STAGED_MARKER}{run_id}-{attempt}"
