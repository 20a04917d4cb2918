"""A headless Chromium that a test drives by its own protocol, over two pipes: no other library.

Each command is a JSON object, ended by a zero byte. A page's clicks and keys are real ones: they
go in where a mouse and a keyboard would.
"""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GET_BROWSER = Path(__file__).parents[2] / ".ci/get-browser"
FOLDER = Path(__file__).parents[2] / ".venv/browser"
WAIT_SECONDS = 20


def find_chromium() -> str:
    """The path of a Chromium; AssertionError with what to do where there is none."""
    found = subprocess.run([GET_BROWSER, FOLDER], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr.strip()
    return found.stdout.strip()


class Page:
    """One page; what goes wrong in it is noted."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.problems: list[str] = []  # errors of scripts, and what was asked of the network
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """What a command of the protocol gives."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            self._note(answer)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path) -> None:
        """Load a page from disk, to the end of its script."""
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.wait_for("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until an expression is true."""
        ends = "performance.now() - began > " + str(WAIT_SECONDS * 1000)
        self.run(
            "new Promise((done, fail) => { const began = performance.now(); (function look() {"
            f"if ({condition}) done(); else if ({ends}) fail(new Error('waited too long'));"
            "else requestAnimationFrame(look); })(); })"
        )

    def click(self, selector: str) -> None:
        """A click of the mouse in the middle of an element."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind, x=box[0], y=box[1], button="left", clickCount=1,
            )  # fmt: skip

    def press(self, key: str, code: int = 0) -> None:
        """A key of the keyboard; code: of one that writes nothing."""
        text = {"Enter": "\r", " ": " "}.get(key, "" if code else key)
        down: dict[str, object] = {"key": key, "windowsVirtualKeyCode": code or ord(key)}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **down)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """As a screen of that size, light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=media)

    def picture(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._answers, 1 << 20)
            assert read, "Chromium has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(str(params["entry"]))
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.problems.append(f"asked the network for {url}")


@contextmanager
def open_page(profile: Path) -> Iterator[Page]:
    """A page of a browser of its own. profile: a directory for its files."""
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    words = [find_chromium(), "--headless", "--remote-debugging-pipe", "--no-sandbox"]
    words += ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"]
    words += [f"--user-data-dir={profile}", "--disable-extensions"]
    # Chromium reads from 3 and writes to 4; a shell puts ours there
    line = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    browser = subprocess.Popen(
        ["/bin/bash", "-c", line, *words],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)  # which ends it
        os.close(answers)
        browser.wait(timeout=WAIT_SECONDS)
