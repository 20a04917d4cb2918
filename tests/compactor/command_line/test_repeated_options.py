"""An option that takes one value is refused where it is given twice: one would be done without."""

import pytest

from compactor.command_line import cli


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["--exclude", "orders", "--exclude=prices"],
            "--exclude: is given 2 times; it may be given once; one expression can match several "
            "topics, like 'a|b'",
        ),
        (["--as-of", "1", "--as-of", "--as-of"], "--as-of: is given 2 times; it may be given once"),
        (["--config", "a", "--config=b", "--config", "c"], "--config: is given 3 times; it may"),
    ],
)
def test_the_last_one_does_not_silently_win(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert cli.main(["run", "/nowhere", "--dry-run", *words]) == 2
    assert f"compactor: {problem}" in capsys.readouterr().err


def test_what_may_be_repeated_is_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--allow-file-system", "a", "--allow-file-system", "b", "--dry-run", "--dry-run"]
    assert cli.main(["run", "/nowhere", *words, "--include", "--exclude"]) == 2
    assert "LOG_DIR /nowhere: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["log"], ["run"], ["explain"], ["log", "truncate"]])
def test_no_help_shows_a_type_of_python(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert not [name for name in ("bool", "<str>", "<list") if name in shown]


@pytest.mark.parametrize("command", [c for c in cli.COMMANDS if c != "report"])
def test_no_name_in_a_help_is_cut_off_at_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`report` has FILE… for its arguments."""
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([command, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "…" in line] == []


@pytest.mark.parametrize("words", [[], ["log"]])
def test_the_list_of_commands_has_whole_sentences(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lines that the terminal's width breaks, and nothing else."""
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main([*words, "--help"]) == 0
    _, commands = capsys.readouterr().out.split("─ Commands ─")
    rows = [line.strip("│ ") for line in commands.splitlines() if line.startswith("│")]
    assert len(rows) >= 8
    assert [row for row in rows if not row.endswith(".")] == []


def test_a_paragraph_of_a_help_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert cli.main(["recover", "--help"]) == 0
    [line] = [x for x in capsys.readouterr().out.splitlines() if " After an unclean" in x]
    assert line.strip().endswith("until a broker has stopped cleanly.")
