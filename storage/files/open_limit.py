"""How many files may be open at once of those that are opened again when they are needed."""

import resource

MOST_OPEN = 500


def most_by_default() -> int:
    """500, or half of what the process may have open where that is less."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPEN if allowed == resource.RLIM_INFINITY else max(1, min(MOST_OPEN, allowed // 2))
