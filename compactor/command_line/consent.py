"""An operator's agreement to what a command is about to do: `--yes`, or a yes on the terminal."""

import sys
from collections.abc import Sequence

from compactor.host.log_lines import log_line
from compactor.host.printable import printable

YES = ("y", "yes")


def agrees(lines: Sequence[str], yes: bool) -> bool:
    """Show what will be done, and ask; where yes was said already, neither. Without a terminal to
    ask on, nobody agrees."""
    if yes:
        return True
    for line in lines:
        log_line(printable(line))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        log_line("There is no terminal to ask on: give --yes to do this.")
        return False
    sys.stderr.write("Do this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES
