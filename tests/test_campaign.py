"""The harness of campaigns: what it tries, prints, resumes and ends with."""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.campaign import Campaign, Case, Tried, of_seeds


def tried(group: str, number: int) -> Tried:
    return Tried(["lost"] if number == 4 else [], {f"{group} done": 1})


def cases(wanted: Namespace, _: Path) -> Iterator[Case]:
    for group in wanted.only:
        for number in range(7):
            yield Case(f"case {number}", partial(tried, group, number), group)


def seeded(wanted: Namespace, _: Path) -> Iterator[Case]:
    return of_seeds(wanted, lambda seed: Tried(["wrong"] if seed == wanted.bad else []))


GROUPED = Campaign("tests.grouped", "", cases, groups=("a", "b"))
SEEDED = Campaign("tests.seeded", "", seeded, count=5, options={"--bad": {"type": int}})
LOST_IN_A = [
    "WRONG: a, case 4: lost",
    "  again: python -m tests.grouped --only a --case 'case 4'",
]


@pytest.mark.parametrize(
    ("campaign", "words", "code", "printed"),
    [
        (GROUPED, "--only a", 1, [*LOST_IN_A, "         7 a done", "7 tried, 1 wrong"]),
        (GROUPED, "--only a --case", 0, ["         1 a done", "1 tried, 0 wrong"]),
        (
            GROUPED,
            "--one-of 3",  # of each group: 0, 3 and 6
            0,
            [
                *("         3 a done", "         3 b done"),
                *("a: 3 tried, 0 wrong", "b: 3 tried, 0 wrong", "6 tried, 0 wrong"),
            ],
        ),
        (SEEDED, "--first-seed 7", 0, ["5 tried, 0 wrong"]),
        (
            SEEDED,
            "--bad 9 --first-seed 7 --count 3",
            1,
            [
                "WRONG: seed 9: wrong",
                "  again: python -m tests.seeded --bad 9 --seed 9",
                "3 tried, 1 wrong",
            ],
        ),
        (
            SEEDED,
            "--bad 9 --seed 9 --seed 3",
            1,
            [
                "WRONG: seed 9: wrong",
                "  again: python -m tests.seeded --bad 9 --seed 9",
                "2 tried, 1 wrong",
            ],
        ),
    ],
)
def test_what_is_tried_and_printed(
    capsys: pytest.CaptureFixture[str],
    campaign: Campaign,
    words: str,
    code: int,
    printed: list[str],
) -> None:
    arguments = words.split() + ["case 1"] * words.endswith("--case")
    assert campaign.main(arguments) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(", in ")[0] for line in lines] == printed


def test_seeds_that_are_drawn_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert SEEDED.main([]) == 0
    first, last = capsys.readouterr().out.splitlines()
    number = int(first.removeprefix("--first-seed "))
    assert SEEDED.main(["--first-seed", str(number), "--bad", str(number + 4)]) == 1
    assert last.startswith("5 tried, 0 wrong")


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    outcomes, calls = tmp_path / "outcomes", list[int]()

    def attempt(seed: int) -> Tried:
        calls.append(seed)
        return Tried(["wrong"] if seed == 2 else [])

    campaign = Campaign("tests.x", "", lambda wanted, _: of_seeds(wanted, attempt), count=3)
    words = ["--first-seed", "0", "--resume", str(outcomes)]
    assert campaign.main(words) == 1
    assert calls == [0, 1, 2]
    outcomes.write_text("".join(outcomes.read_text().splitlines(keepends=True)[::2]))
    assert campaign.main(words) == 1  # what was wrong then counts
    assert calls == [0, 1, 2, 1]


def test_processes_share_the_cases(capfd: pytest.CaptureFixture[str]) -> None:
    assert GROUPED.main(["--jobs", "2"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert {*LOST_IN_A, "         7 a done", "         7 b done"} <= {*lines}
    assert lines[-1].startswith("14 tried, 2 wrong, in ")


def test_the_verdict_on_all_of_them_counts(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Campaign(
        "tests.x", "", seeded, count=1, options={"--bad": {}}, verdict=lambda *_: ["too few"]
    )
    assert verdict.main(["--seed", "1"]) == 1
    assert "WRONG: too few" in capsys.readouterr().out
