"""How fast a stage goes, and how long it will take at that pace. Pure."""

from compactor.host.printable import duration_text, size_text

SURE_SECONDS = 2.0  # before that a pace says little


def pace_text(done: int, total: int, seconds: float, is_in_bytes: bool) -> str:
    """Like `120.0 MB/s, 1 min 5 s left`; nothing where that cannot be told yet.

    total: 0 where it is not known. seconds: since the stage began.
    """
    if seconds < SURE_SECONDS or not done > 0:
        return ""
    parts = [f"{size_text(round(done / seconds))}/s"] if is_in_bytes else []
    if done < total:
        left_ms = (total - done) * seconds / done * 1000
        parts.append(f"{duration_text(max(round(left_ms / 1000), 1) * 1000)} left")
    return ", ".join(parts)
