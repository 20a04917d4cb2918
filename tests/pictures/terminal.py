"""What a command shows in a terminal of 100 columns, and a picture of it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from xml.etree import ElementTree

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

WIDTH = 100
# the format of rich fetches a font from a foreign host
_WITHOUT_FONT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def shown(*words: str, cache: Path) -> str:
    """What a command prints to a terminal, with colours. cache: for what is kept between runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    environment |= {"XDG_CACHE_HOME": str(cache), "COLUMNS": str(WIDTH)}
    process = subprocess.Popen(
        [sys.executable, "-m", "compactor", *words], stdout=theirs, env=environment
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, words
    return b"".join(parts).decode().replace("\r\n", "\n")


def picture(shown_text: str, name: str) -> str:
    """An SVG of a terminal. name: of the picture, which tells its styles from those of others."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(width=WIDTH, record=True, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(shown_text.rstrip("\n")))
        return console.export_svg(title="", unique_id=name, code_format=_WITHOUT_FONT)


def lines_of(svg: str) -> list[str]:
    """The lines of a picture, without colours and runs of spaces."""
    lines: dict[float, list[str]] = {}
    for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        lines.setdefault(float(node.attrib["y"]), []).append(node.text or "")
    return [" ".join(" ".join(parts).split()) for _, parts in sorted(lines.items())]
