"""The HTML page in a real Chromium: it opens from disk, and can be clicked, sorted and searched.

Run by `make test-browser`, which gets the browser.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactor.host.printable import printable
from compactor.views.page.html import html_page
from tests.browser.chromium import Page, open_page
from tests.browser.documents import EVIL, plan_document, run_document

pytestmark = pytest.mark.browser
LOGS = 10_000
NAMES = "[...document.querySelectorAll('#rows td.name > span')].map((e) => e.textContent)"
SIZES = "[...document.querySelectorAll('#rows tr')].map((r) => r.querySelector('td.n').innerText)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return plan_document(LOGS)


@pytest.fixture
def opened(page: Page, plan: dict[str, Any], tmp_path: Path) -> Iterator[Page]:
    """The page of a plan of many logs, on a desktop."""
    path = tmp_path / "plan.html"
    path.write_text(html_page(plan), encoding="utf-8")
    page.resize(1280, 900)
    page.problems.clear()
    page.open(path)
    yield page
    assert page.problems == []


def all_logs(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [*plan["logs"], *plan["not_taken"]]


def name_of(log: dict[str, Any]) -> str:
    return printable(f"{log['topic']}-{log['partition']}")


def search(page: Page, words: str) -> None:
    page.run("document.getElementById('search').value = ''")
    page.click("#search")
    page.write(words)


def test_ten_thousand_logs_are_there_within_three_seconds(
    page: Page, plan: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "plan.html"
    text = html_page(plan)
    assert len(text.encode()) < 3_000_000
    path.write_text(text, encoding="utf-8")
    began = time.monotonic()
    page.open(path)
    page.wait_for("document.querySelectorAll('#rows tr').length > 0")
    assert time.monotonic() - began < 3
    assert page.run("document.getElementById('count').textContent").startswith(
        "10,000 of 10,000 logs"
    )


def test_the_verdict_is_the_first_that_is_read(opened: Page) -> None:
    title = opened.run("document.querySelector('h1').textContent")
    assert title == opened.run("document.querySelector('h1, h2').textContent")
    assert title.startswith("3,334 logs would be cleaned")


def test_the_biggest_gain_is_on_top_and_a_click_sorts(opened: Page, plan: dict[str, Any]) -> None:
    gains = sorted(plan["logs"], key=lambda log: -log["gain_bytes"])
    assert opened.run(NAMES)[:10] == [name_of(log) for log in gains[:10]]
    opened.click("[data-sort=total]")
    largest = sorted(all_logs(plan), key=lambda log: -log["total_bytes"])
    assert opened.run(NAMES)[:10] == [name_of(log) for log in largest[:10]]
    assert opened.run("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == (
        "descending"
    )
    opened.click("[data-sort=total]")
    assert opened.run("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == (
        "ascending"
    )
    smallest = min(log["total_bytes"] for log in all_logs(plan))
    assert opened.run(SIZES)[0] == f"{smallest / 1000:.1f} kB"


def test_a_search_finds_all_words_in_name_and_reason(opened: Page, plan: dict[str, Any]) -> None:
    search(opened, "orders1- newer")
    found = [
        name_of(log)
        for log in plan["not_taken"]
        if "orders1-" in name_of(log) and "newer" in log["reason"]
    ]
    assert found and sorted(opened.run(NAMES)) == sorted(found)
    assert opened.run("document.getElementById('count').textContent").startswith(
        f"{len(found):,} of"
    )


def test_a_filter_leaves_the_logs_of_one_reason(opened: Page, plan: dict[str, Any]) -> None:
    opened.run(
        "(() => { const s = document.getElementById('reason'); s.value = 'damaged';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    count = sum(log["reason_code"] == "damaged" for log in plan["not_taken"])
    shown = opened.run("document.getElementById('count').textContent")
    assert shown.startswith(f"{count:,} of 10,000 logs")


def test_rows_by_topic_are_the_sums_of_their_logs(opened: Page, plan: dict[str, Any]) -> None:
    opened.run(
        "(() => { const s = document.getElementById('by'); s.value = 'topic';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    search(opened, "orders1-")
    topics = {log["topic"] for log in all_logs(plan) if "orders1-" in name_of(log)}
    assert set(opened.run(NAMES)) == topics == {"orders1"}
    logs = sum(log["topic"] == "orders1" for log in all_logs(plan))
    assert opened.run(SIZES) == [str(logs)]


def test_names_made_of_html_and_control_characters_are_text(opened: Page) -> None:
    for number, name in enumerate(EVIL):
        shown = printable(f"{name}-{number}")
        search(opened, shown.lower().split()[0])
        assert shown in opened.run(NAMES)
    assert opened.run("window.broken") is None
    assert opened.run("document.querySelectorAll('img, #rows script').length") == 0


def test_it_works_from_the_keyboard(opened: Page) -> None:
    opened.press("/")
    assert opened.run("document.activeElement.id") == "search"
    opened.write("no-utf8")
    assert len(opened.run(NAMES)) == 1
    opened.press("Escape", 27)
    assert len(opened.run(NAMES)) == 100
    opened.run("document.querySelector('[data-sort=name]').focus()")
    opened.press("Enter", 13)
    assert opened.run("document.activeElement.dataset.sort") == "name"
    assert opened.run("document.activeElement.parentNode.getAttribute('aria-sort')") == "ascending"


def test_more_rows_are_shown_when_asked_for(opened: Page) -> None:
    assert len(opened.run(NAMES)) == 100
    opened.click("#more")
    assert len(opened.run(NAMES)) == 1100


def test_light_and_dark_by_the_system_and_by_a_button(opened: Page) -> None:
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    light = opened.run(colour)
    opened.resize(1280, 900, "dark")
    dark = opened.run(colour)
    assert light != dark
    opened.click("#theme")
    assert opened.run(colour) == light
    opened.click("#theme")
    opened.resize(1280, 900, "light")
    assert opened.run(colour) == dark
    opened.click("#theme")
    assert opened.run(colour) == light


def test_nothing_is_wider_than_a_phone(opened: Page) -> None:
    opened.resize(390, 844)
    assert opened.run("document.documentElement.scrollWidth") <= 390
    widest = "Math.max(...[...document.querySelectorAll('#rows td')].map((e) => e.scrollWidth))"
    assert opened.run(widest) <= 390
    opened.click("[data-sort=name]")
    assert opened.run("document.querySelector('[aria-sort]').textContent") == "Log"


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_page_of_a_run(page: Page, tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "run.html"
    path.write_text(html_page(run_document(40, dry_run)), encoding="utf-8")
    page.problems.clear()
    page.open(path)
    words = "30 logs would be cleaned" if dry_run else "30 logs cleaned"
    assert page.run("document.querySelector('h1').textContent").startswith(words)
    titles = page.run("[...document.querySelectorAll('h2')].map((e) => e.textContent)")
    charts = ["Bytes by reason", "Biggest gains", "Records removed", "Phases"]
    helps = "What to do about the others"
    assert titles == [*charts, "The largest logs, before → after, to scale", helps, "Logs"]
    reasons = page.run("[...document.querySelectorAll('.helps dt')].map((e) => e.textContent)")
    assert reasons == ["no-room 3 logs"]  # 11, 23 and 35; for the others nothing has to be done
    assert len(page.run(NAMES)) == 40
    assert page.run("document.getElementById('dir-label').offsetWidth > 0")  # there are two
    assert page.problems == []


def test_sections_are_drawn_to_scale(page: Page, tmp_path: Path) -> None:
    document = plan_document(1)
    document["logs"][0] |= {
        "total_bytes": 1000, "clean_bytes": 500, "dirty_bytes": 400, "held_bytes": 100,
    }  # fmt: skip
    path = tmp_path / "run.html"
    path.write_text(html_page(document), encoding="utf-8")
    page.resize(1280, 900)
    page.open(path)
    for bar in (".sections .log", "#rows .mini"):
        widths = page.run(
            f"[...document.querySelector('{bar}').children].map((e) => [e.className,"
            "e.getBoundingClientRect().width / e.parentNode.getBoundingClientRect().width])"
        )
        shares = {kind: round(share, 2) for kind, share in widths}
        assert shares == {"clean": 0.5, "dirty": 0.3, "waiting": 0.1, "active": 0.1}


def test_a_run_is_drawn_before_and_after_it(page: Page, tmp_path: Path) -> None:
    """Of 900 bytes 800 were rewritten to 300; of the log that failed nobody knows what it kept."""
    document = run_document(4)
    for log in document["logs"]:
        log |= {
            "topic": "t", "total_bytes": 1000, "clean_bytes": 500, "dirty_bytes": 400,
            "held_bytes": 100, "bytes_before": 800, "bytes_after": 300,
        }  # fmt: skip
    document["logs"][3] |= {"topic": "u", "status": "failed"}
    path = tmp_path / "run.html"
    path.write_text(html_page(document), encoding="utf-8")
    page.problems.clear()
    page.resize(1280, 900)
    page.open(path)
    widths = "[...document.querySelectorAll('{}')].map((e) => Math.round(100 * " + (
        "e.getBoundingClientRect().width / e.parentNode.getBoundingClientRect().width))"
    )
    assert page.run(widths.format(".sections li:first-child .log")) == [100, 50]
    assert page.run(widths.format("#rows tr:first-child .mini")) == [100, 50]
    told = "[...document.querySelectorAll('#rows tr:first-child .mini')].map((e) => e.title)"
    before = "before: 500 B clean, 300 B dirty, 100 B has to wait, 100 B active or not looked into"
    after = "after: 300 B clean, 100 B has to wait, 100 B active or not looked into"
    assert page.run(told) == [before, after]
    page.run(
        "(() => { const s = document.getElementById('by'); s.value = 'topic';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    page.click("[data-sort=after]")
    numbers = "[...document.querySelectorAll('#rows tr')].map((r) => [...r.querySelectorAll("
    numbers += "'td.n')].slice(1, 3).map((e) => e.innerText))"
    assert page.run(numbers) == [["3.0 kB", "1.5 kB"], ["1.0 kB", "not known"]]
    assert page.run("document.querySelectorAll('#rows .mini').length") == 3
    page.resize(390, 844)
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.problems == []


def test_an_ending_with_an_error_has_a_page_too(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "error.html"
    document = {**run_document(0), "error": "locked <b>"}
    path.write_text(html_page({**document, "totals": {}}), encoding="utf-8")
    page.problems.clear()
    page.open(path)
    assert page.run("document.querySelector('h1').textContent") == "locked <b>."
    assert json.dumps(page.problems) == "[]"
