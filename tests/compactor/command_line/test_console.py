"""What is shown keeps whole what is to be pasted."""

import pytest
from rich.console import Group
from rich.text import Text

from compactor.command_line import console


def test_a_line_that_does_not_wrap_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"compactor undo --discard /{'x' * 2 * console.PIPE_WIDTH}"
    console.show(lambda _: Group(Text(command, no_wrap=True, overflow="ignore")))
    assert capsys.readouterr().out == f"{command}\n"
