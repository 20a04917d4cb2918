"""The pictures of a terminal say what the program says now; `make pictures` draws them anew."""

import re
from pathlib import Path

import pytest

from tests.bench.__main__ import CHART
from tests.pictures.__main__ import PICTURES
from tests.pictures.made import COMMANDS, make_log_dir, terminal_picture
from tests.pictures.terminal import lines_of

NUMBER = re.compile(r"\d[\d.,:]*(?: (?:[kMG]?B|s|min|h|days)\b)?")  # of this machine, or this codec


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_log_dir(tmp_path_factory.mktemp("p"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_picture_says_what_the_program_says(command: str, log_dir: Path, tmp_path: Path) -> None:
    shown, says = (
        NUMBER.sub("N", " ".join(lines_of(svg))).split()  # where a line ends depends on the path
        for svg in (
            (PICTURES / f"{command}.svg").read_text(encoding="utf-8"),
            terminal_picture(command, log_dir, tmp_path),
        )
    )
    assert shown == says, "make pictures"


def test_every_picture_of_the_readme_is_one_that_is_made() -> None:
    readme = (PICTURES.parents[1] / "README.md").read_text(encoding="utf-8")
    made = {f"{command}.svg" for command in COMMANDS} | {"report.png", CHART.name}
    assert set(re.findall(r"docs/pictures/([\w.]+)", readme)) == made
    assert {path.name for path in PICTURES.iterdir()} == made
