"""`python -m tests.pictures`: draw docs/pictures anew, as the program and the page look now."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser.chromium import open_page
from tests.pictures.made import AS_OF, COMMANDS, SHOWN_PATH, make_log_dir, terminal_picture

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PAGE_WIDTH, PAGE_HEIGHT = 1280, 1320


def main() -> None:
    """Draw each picture; AssertionError where Chromium cannot be had."""
    with tempfile.TemporaryDirectory(prefix="compactor-pictures-") as name:
        root = Path(name)
        log_dir = make_log_dir(root)
        for command in COMMANDS:
            drawn = terminal_picture(command, log_dir, root / "cache")
            (PICTURES / f"{command}.svg").write_text(drawn, encoding="utf-8")
        page = root / "report.html"
        words = ["run", str(log_dir), "--dry-run", *AS_OF, "--report", str(page)]
        subprocess.run(
            [sys.executable, "-m", "compactor", *words], stdout=subprocess.DEVNULL, check=True
        )
        text = page.read_text(encoding="utf-8").replace(str(log_dir), SHOWN_PATH)
        page.write_text(text, encoding="utf-8")
        with open_page(root / "profile") as browser:
            browser.resize(PAGE_WIDTH, PAGE_HEIGHT)
            browser.open(page)
            browser.picture(PICTURES / "report.png")


if __name__ == "__main__":
    main()
