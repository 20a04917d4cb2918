"""Rate and time left, by hand."""

import pytest

from compactor.host.progress import pace_text


@pytest.mark.parametrize(
    ("done", "total", "seconds", "is_in_bytes", "shown"),
    [
        (120_000_000, 480_000_000, 4.0, True, "30.0 MB/s, 12 s left"),
        (120_000_000, 0, 4.0, True, "30.0 MB/s"),
        (480_000_000, 480_000_000, 4.0, True, "120.0 MB/s"),
        (10, 7210, 10.0, False, "2 h left"),
        (3, 9, 1.9, False, ""),
        (0, 9, 60.0, True, ""),
    ],
)
def test_a_pace(done: int, total: int, seconds: float, is_in_bytes: bool, shown: str) -> None:
    assert pace_text(done, total, seconds, is_in_bytes) == shown
