"""docs/watching.md names every measure, each with the words that the code has for it."""

import re
from pathlib import Path

from compactor.watching.measures import LOG_MEASURES_OF_PLAN, LOG_MEASURES_OF_RUN, TOTALS

PAGE = Path(__file__).parents[3] / "docs" / "watching.md"


def test_each_name_has_a_row_that_begins_with_its_words() -> None:
    rows = dict(
        re.findall(
            r"^\| `([a-z]+(?:_[a-z]+)*)` \| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.M
        )
    )
    known = {**LOG_MEASURES_OF_PLAN, **LOG_MEASURES_OF_RUN, **TOTALS}
    assert rows.keys() == known.keys()
    for name, words in known.items():
        assert rows[name].replace("`", "").startswith(words), name
