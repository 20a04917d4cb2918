"""Every link of a page to another page, to a place in it, or to a file leads somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")}
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
ID = re.compile(r'<a id="([^"]+)"></a>')
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def places(page: Path) -> frozenset[str]:
    """What can follow the # of a link: ids, and headings as GitHub writes them there."""
    text = page.read_text(encoding="utf-8")
    headings = (ID.sub("", heading).lower() for heading in HEADING.findall(text))
    slugs = (re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings)
    return frozenset((*ID.findall(text), *slugs))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        name, _, place = link.partition("#")
        target = page.parent / name if name else page
        if link.startswith(("https://", "mailto:")):
            continue
        if not target.exists() or (place and place not in places(target)):
            lost.append(link)
    assert lost == []


def test_the_pages_are_found() -> None:
    names = {page.name for page in PAGES}
    assert names >= {"README.md", "compaction.md", "glossary.md", "PROVENANCE.md"}
