"""The text of the HTML page; how it looks and works is tested in a browser (tests/browser)."""

import json
import re
from typing import Any

import pytest

from compactor.views.page.contents import charts_of, help_of, largest_of, rows_of, verdict_of
from compactor.views.page.html import html_page
from tests.browser.documents import EVIL, plan_document, run_document


def data_of(page: str) -> dict[str, Any]:
    """What the page's script is given."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def test_ten_thousand_logs_are_less_than_three_megabytes() -> None:
    page = html_page(plan_document(10_000))
    assert len(page.encode()) < 3_000_000
    assert len(data_of(page)["rows"]) == 10_000


def test_nothing_is_fetched_and_no_name_is_markup() -> None:
    page = html_page(run_document(len(EVIL)))
    assert not re.search(r"(src|href|action)=\"(?!#|data:)", page)
    assert not re.search(r"url\(|@import|<link(?! rel=\"icon\" href=\"data:,\")", page)
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    shown = data_of(page)["topics"]
    assert shown[2:] == [
        r"a\x1b[31mred\x07\n\u202ebackwards", "quotes\"'&amp;{{7*7}}", r"no-utf8-\udcff",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "text", "mood"),
    [
        ({"error": "locked", "exit_code": 3}, "locked.", "bad"),
        ({"exit_code": 0}, "2 logs cleaned: 1.0 kB → 250 B, 75.0% less.", "good"),
        ({"exit_code": 4, "dry_run": True}, "1 log would be cleaned: 1.0 kB → 250 B", "warn"),
        ({"exit_code": 1, "status": "failed"}, "2 logs cleaned", "bad"),
    ],
)
def test_the_verdict(change: dict[str, Any], text: str, mood: str) -> None:
    document = run_document(0) | change
    document["totals"] = {
        "logs": {"cleaned": 2, "would-clean": 1, "failed": 0},
        "bytes_before": 1000,
        "bytes_after": 250,
    }
    found = verdict_of(document)
    assert (found.text.startswith(text), found.mood) == (True, mood)


def test_a_log_is_drawn_as_its_sections() -> None:
    document = plan_document(6)  # of which it takes on two
    document["not_taken"] = []
    sizes = {"total_bytes": 200, "clean_bytes": 100, "dirty_bytes": 60, "held_bytes": 20}
    document["logs"][0] |= sizes
    document["logs"][1] |= dict.fromkeys(sizes, 0) | {"total_bytes": 50}
    first, second = largest_of(rows_of(document))
    assert (first.percent, second.percent) == (100, 25)
    assert [(p.kind, p.percent) for p in first.parts] == [
        ("clean", 50), ("dirty", 20), ("waiting", 10), ("active", 20),
    ]  # fmt: skip
    assert [(p.kind, p.percent) for p in second.parts] == [("active", 100)]
    assert (first.text, first.after) == ("200 B", None)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_log_of_a_run_is_drawn_before_and_after_it(dry_run: bool) -> None:
    """100 clean and 40 dirty bytes are rewritten to 30; 20 wait, 40 are active; 10 go by age."""
    document = run_document(1, dry_run)
    document["logs"][0] |= {
        "total_bytes": 200, "clean_bytes": 100, "dirty_bytes": 60, "held_bytes": 20,
        "bytes_before": 140, "bytes_after": 30, "retention": {"time": {"segments": 1, "bytes": 10}},
    }  # fmt: skip
    [drawn] = largest_of(rows_of(document))
    assert (drawn.percent, drawn.after_percent, drawn.text) == (100, 40, "200 B → 80 B")
    assert [(p.kind, p.percent) for p in drawn.after or ()] == [
        ("clean", 25), ("waiting", 25), ("active", 50),
    ]  # fmt: skip
    row = dict(
        zip(
            data_of(html_page(document))["fields"],
            data_of(html_page(document))["rows"][0],
            strict=False,
        )
    )
    assert row["total"] == 200
    after = ("after", "clean_after", "dirty_after", "waiting_after", "active_after")
    assert [row[name] for name in after] == [80, 20, 0, 20, 40]


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ({"status": "set-aside", "bytes_after": 0}, [100, 40, 20, 40]),  # as it was
        ({"status": "passed-over", "bytes_before": 0, "bytes_after": 0}, [100, 40, 20, 40]),
        ({"status": "failed", "bytes_after": 140}, None),  # it may keep some cleaned segments
        ({"bytes_after": 150}, [150, 0, 20, 40]),  # it grew
        ({"retention": {"log_start": {"bytes": 50}, "size": {"bytes": 5}}}, [0, 0, 0, 35]),
    ],
)
def test_what_a_run_leaves_of_a_log(change: dict[str, Any], after: list[int] | None) -> None:
    document = run_document(1)
    document["logs"][0] |= {
        "total_bytes": 200, "clean_bytes": 100, "dirty_bytes": 60, "held_bytes": 20,
        "bytes_before": 140, "bytes_after": 30,
    }  # fmt: skip
    document["logs"][0] |= change
    [row] = rows_of(document)
    assert (None if row.after is None else list(row.after)) == after
    [drawn] = largest_of([row])
    assert drawn.text == f"200 B → {'not known' if after is None else f'{sum(after)} B'}"


def test_the_charts_add_up() -> None:
    document = run_document(8)
    for log in document["logs"]:
        log |= {"total_bytes": 1000, "bytes_before": 600, "bytes_after": 100}
    by_reason, gains, *_ = charts_of(document, rows_of(document))
    assert [(b.label, b.text) for b in by_reason.bars[:1]] == [("cleaned", "6.0 kB · 6")]
    assert {bar.text for bar in gains.bars} == {"500 B"}


def test_the_page_of_a_plan_calls_dirty_bytes_so_and_has_the_estimate_of_a_sample() -> None:
    document = plan_document(3)
    page = html_page(document)
    assert "To gain" not in page + html_page(run_document(3, dry_run=True))
    assert "Dirty to clean" in page
    assert "Most dirty to clean" in page
    assert "estimated gain" not in page
    expected = {"least_bytes": 1_000, "most_bytes": 2_000, "untold": 1}
    page = html_page(document | {"expected": expected})
    assert "<dt>estimated gain</dt><dd>1.0 kB to 2.0 kB<small>1 log not known</small></dd>" in page


def test_what_to_do_is_told_once_for_each_reason_with_a_command_for_the_largest_log() -> None:
    log = {"log_dir": "/data/a b", "topic": "t", "status": "passed-over", "reason": "x"}
    logs = [
        {**log, "partition": 0, "reason_code": "active-segment", "total_bytes": 10},
        {**log, "partition": 1, "reason_code": "active-segment", "total_bytes": 20},
        {**log, "partition": 2, "reason_code": "unknown-policy", "total_bytes": 90},
        {**log, "partition": 3, "reason_code": "nothing-new", "total_bytes": 99},  # it is well
        {**log, "partition": 4, "reason_code": "of-a-later-version", "total_bytes": 99},
    ]
    document = plan_document(0) | {"logs": [], "not_taken": logs}
    helps = help_of(rows_of(document))
    assert [(help_.reason, help_.logs) for help_ in helps] == [
        ("unknown-policy", "t-2"),
        ("active-segment", "2 logs"),
    ]
    assert helps[1].commands[-1] == "compactor log roll '/data/a b' t-1"
    assert "<code>compactor log roll &#39;/data/a b&#39; t-1</code>" in html_page(document)
