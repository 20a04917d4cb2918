"""Pages that name code name what there is; in the glossary each word stands once, in order."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROW = re.compile(r'^\| <a id="([a-z-]+)"></a>([a-z -]+) \| (.+) \| (.+) \|$', re.MULTILINE)


def test_each_word_stands_once_and_in_order() -> None:
    words = [word for _, word, _, _ in ROW.findall(PAGE)]
    assert len(words) >= 20
    assert words == sorted(set(words))
    assert [name for name, word, _, _ in ROW.findall(PAGE) if name != word.replace(" ", "-")] == []


def test_the_names_of_the_code_are_in_the_code() -> None:
    """A class or value by its name, a module by its file."""
    paths = [
        path
        for package in ("compactor", "cleaner_jobs", "storage")
        for path in (ROOT / package).rglob("*.py")
    ]
    source = "".join(path.read_text(encoding="utf-8") for path in paths)
    files = {path.name for path in paths}
    missing = []
    for _, word, _, cell in ROW.findall(PAGE):
        names = re.findall(r"`([^`]+)`", cell)
        assert names, word
        for name in names:
            last = name.split("/")[-1]
            known = last in files if last.endswith(".py") else last.split(".")[-1] in source
            missing += [] if known else [name]
    assert missing == []


def test_the_functions_that_decide_a_rule_are_in_the_modules_that_are_named() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Where a rule is decided")[2]
    rows = re.findall(r"^\| ([a-z].+) \| (.+) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) > 10
    for rule, modules, cell in rows:
        paths = re.findall(r"`([^`]+\.py)`", modules)
        source = "".join((ROOT / path).read_text(encoding="utf-8") for path in paths)
        for name in re.findall(r"`([^`]+)`", cell):
            owner, _, method = name.partition(".")
            assert re.search(rf"^(def|class) {owner}\b", source, re.MULTILINE), (rule, name)
            assert re.search(rf"^    def {method}\b" if method else "", source, re.MULTILINE), name
