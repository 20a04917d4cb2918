"""What grows as a log does, and nothing faster; and the page says what the program finds."""

import pytest

from tests.bench import scale
from tests.bench.scale import SIZES, Count, memory, simulate
from tests.bench.table import PAGES

GIB = 1 << 30


@pytest.fixture(scope="module")
def found() -> list[list[Count]]:
    return [list(simulate(log_bytes)) for log_bytes in SIZES]


def test_no_count_grows_faster_than_the_log(found: list[list[Count]]) -> None:
    _require_growth_of_the_log(found)


@pytest.mark.parametrize("cores", [2, 32])
def test_it_is_so_on_few_cores_and_on_many(cores: int) -> None:
    _require_growth_of_the_log([list(simulate(size, cores)) for size in SIZES])


def _require_growth_of_the_log(found: list[list[Count]]) -> None:
    short, long = found
    for before, after in zip(short, long, strict=True):
        most = before.number * SIZES[1] / SIZES[0]
        if before.what == "turns a hash partition":  # a power of two
            most *= 2
        assert after.number <= 1.1 * most, after


def test_the_driver_stays_below_two_gib(found: list[list[Count]]) -> None:
    """Its values, and the rows of which they are made, as text."""
    to_driver = sum(count.number for count in found[1] if "bytes to the driver" in count.what)
    assert 0 < memory(SIZES[1]).number + to_driver < 2 * GIB


def test_the_page_has_the_counts_of_now(found: list[list[Count]]) -> None:
    page = [
        " ".join(line.split()) for line in (PAGES / "scaling.md").read_text("utf-8").splitlines()
    ]
    for line in scale.table(found).splitlines()[2:]:
        if "bytes" not in line:  # a field more in a row changes these a little
            assert " ".join(line.split()) in page
