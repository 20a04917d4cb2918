"""Makes text safe for a terminal: no file name or record can move its cursor.

Anybody who can make a directory chooses names of topics and paths. Control characters, escape
sequences, marks that reverse the writing direction and bytes that are not UTF-8 are shown as
escapes.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from shlex import quote

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (
    ("day", 86_400_000, "h", 3_600_000),
    ("h", 3_600_000, "min", 60_000),
    ("min", 60_000, "s", 1000),
)
SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")  # each a thousand times the one before


def printable(text: str) -> str:
    """Return text with a backslash escape for each character that does not print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """Return printable text with line breaks and the blanks around them as one space."""
    return printable(" ".join(part.strip() for part in text.splitlines() if part.strip()))


def size_text(size_bytes: int) -> str:
    """Return bytes in decimal units with three or four figures: 999 B, 1.0 kB, 12.3 MB, 1.4 TB."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    size = float(size_bytes)
    for unit in SIZE_UNITS[1:]:
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size:,.0f} PB"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return `1 segment`, `2 segments`, `1,234 segments`; plural: if it is not the noun with s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


def offset_range(first: int, last: int) -> str:
    """Return `offset 5`, or `offsets 5 to 7`; both ends inclusive."""
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def first_few(names: Sequence[str], shown: int = 3) -> str:
    """Return `a, b, c and 9 more`, printable."""
    return printable(few(names, shown))


def few(texts: Sequence[str], shown: int, between: str = ", ") -> str:
    """Return the first texts, and the number of the others."""
    more = len(texts) - shown
    return between.join(texts[:shown]) + (f" and {more:,} more" if more > 0 else "")


def shell_word(text: str) -> str:
    """Quote text as one word for a shell; bash, zsh and ksh read $'…' where it does not print."""
    if text.isprintable():
        return quote(text)
    plain = b"".join(
        bytes([byte]) if 32 <= byte < 127 and byte not in b"\\'" else b"\\x%02x" % byte
        for byte in os.fsencode(text)
    )
    return f"$'{plain.decode('ascii')}'"


def span_text(ms: int) -> str:
    """Return a length of time in the largest unit that makes ten: 301 s, 59 min, 1,157 days."""
    for unit, unit_ms in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= 10 * unit_ms:
            return f"{ms // unit_ms:,} {unit}"
    return f"{ms // 1000} s"


def duration_text(ms: int) -> str:
    """Return a length of time, exact to its second unit: 7 days, 1 h 30 min, 16 min 38 s, 0.5 s."""
    if ms < 10_000:
        return f"{ms / 1000:g} s"
    for unit, unit_ms, smaller, smaller_ms in _UNITS:
        if ms >= unit_ms:
            whole, rest = divmod(ms, unit_ms)
            name = unit if whole == 1 or unit != "day" else "days"
            parts = [f"{whole} {name}"]
            if rest // smaller_ms:
                parts.append(f"{rest // smaller_ms} {smaller}")
            return " ".join(parts)
    return f"{ms // 1000} s"


def iso_time(ms: int) -> str:
    """Return epoch milliseconds as UTC; a time that no calendar holds, as the number."""
    try:
        time = _EPOCH + timedelta(milliseconds=ms)  # exact, as no float would be
    except OverflowError:
        return str(ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
