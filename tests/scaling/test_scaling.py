"""The model finds weights that are there, and its page has the numbers of the kept points."""

import pytest

from tests.scaling import measure, page
from tests.scaling.model import Point, Size, fit


def _size(number: int) -> Size:
    counts = [(number * prime) % 7 + 1 for prime in (1, 2, 3, 4, 5, 6)]
    return Size(
        *(
            count * unit
            for count, unit in zip(counts, (10**8, 10**6, 10**5, 50, 3, 900), strict=True)
        )
    )


def test_it_finds_the_weights_by_which_the_seconds_were_made() -> None:
    """By hand: tasks 2 s a GB and 5 s a thousand segments; driver 0.1 s, 8 s a thousand logs."""
    made = [
        Point(
            str(number),
            size,
            2 * size.log_bytes / 1e9 + 5 * size.segments / 1000,
            0.1 + 8 * size.logs / 1000,
        )
        for number in range(12)
        for size in [_size(number)]
    ]
    model = fit(made)
    assert model.of_tasks["GB"] == pytest.approx(2)
    assert model.of_tasks["thousand segments"] == pytest.approx(5)
    assert model.of_tasks["million keys"] == pytest.approx(0, abs=1e-6)
    assert model.of_driver["round"] == pytest.approx(0.1)
    assert model.of_driver["thousand logs"] == pytest.approx(8)
    size = made[3].size
    assert model.seconds(size, 4) == pytest.approx(
        made[3].driver_seconds + made[3].task_seconds / 4
    )


def test_no_weight_is_below_zero() -> None:
    model = fit(
        [Point("a", Size(10**9, 1, 1, 1), 1, 1), Point("b", Size(2 * 10**9, 1, 1, 1), 0.5, 1)]
    )
    assert all(weight >= 0 for of in model for weight in of.values())


def test_the_page_has_the_numbers_of_the_model() -> None:
    assert page.tables(measure.read()) in page.PAGE.read_text("utf-8")


def test_the_model_is_off_by_less_than_the_page_says() -> None:
    measured = measure.read().points
    model = fit(measured)
    off = [abs(model.task_seconds(p.size) / p.task_seconds - 1) for p in measured]
    assert max(off) < 0.5
