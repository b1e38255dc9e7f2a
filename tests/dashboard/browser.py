"""A real browser without a window, driven over a pipe by the Chrome DevTools Protocol. Needs nothing but the browser.

https://chromedevtools.github.io/devtools-protocol/ ; over the pipe every message ends with a NUL byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_SECONDS = 20.0
# Puts the two ends of the pipes where the browser looks for them, whatever their numbers were.
LAUNCH = (
    "import fcntl, os, sys; a, b = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 20) for n in sys.argv[1:3]); "
    "os.dup2(a, 3); os.dup2(b, 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
KEYS = {
    "Tab": (9, None), "Enter": (13, "\r"), "Escape": (27, None), "Space": (32, " "), "ArrowDown": (40, None),
    "ArrowUp": (38, None), "ArrowRight": (39, None), "ArrowLeft": (37, None),
}  # fmt: skip


def find_browser() -> str | None:
    """Return the path of a browser of this host, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """The browser refused, or something did not come about in time."""


class Browser:
    """One browser process. `page` opens a tab with cookies and storage of its own."""

    def __init__(self, path: str) -> None:
        # All that it keeps is there, and its sockets, whose paths must be short, whatever folders the host names.
        self._folder = tempfile.mkdtemp(prefix="gateway-browser-", dir="/tmp" if os.path.isdir("/tmp") else None)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [sys.executable, "-S", "-c", LAUNCH, str(to_read), str(to_write), path, "--headless=new"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={self._folder}", "--no-first-run", "--disable-gpu"]
        command += ["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions"]
        command += ["--disable-background-networking", "--disable-component-update", "--mute-audio", "--lang=en-GB"]
        self._popen = subprocess.Popen(
            command, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "TZ": "Europe/Berlin", "HOME": self._folder, "TMPDIR": self._folder},
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._rest = b""
        self.hear: dict[str, Callable[[str, dict[str, Any]], None]] = {}

    def close(self) -> None:
        """End the browser and remove what it kept."""
        try:
            self.call("Browser.close")
            self._popen.wait(10)
        except (OSError, BrowserError, subprocess.TimeoutExpired):
            self._popen.kill()
            self._popen.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, session: str | None = None, seconds: float = WAIT_SECONDS, **params: object) -> Any:
        """Call a method of the protocol and return its result; what happens meanwhile is told to `hear`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        end = time.monotonic() + seconds
        while True:
            answer = self._next(end, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def drain(self) -> None:
        """Hear what has happened so far."""
        self.call("Browser.getVersion")

    def page(self) -> "Page":
        """Open a tab that shares nothing with the others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, context)

    def _next(self, end: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self._read, 1 << 20) if ready else b""
            if not piece:
                raise BrowserError(f"{method}: the browser did not answer")
            self._rest += piece
        raw, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if "method" in message and (hear := self.hear.get(message.get("sessionId", ""))):
            hear(message["method"], message["params"])
        return message


class Page:
    """One tab. problems: what its console said was wrong. requests: (method, URL) in order."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self.browser = browser
        self._session = session
        self._context = context
        self.problems: list[str] = []
        self.requests: list[tuple[str, str]] = []
        browser.hear[session] = self._hear
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 900)

    def call(self, method: str, **params: object) -> Any:
        """Call a method of the protocol for this tab."""
        return self.browser.call(method, self._session, **params)

    def close(self) -> None:
        """Close the tab and forget its cookies."""
        self.browser.hear.pop(self._session, None)
        self.browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a screen of this size, with this preference for colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, motion])

    def goto(self, url: str) -> None:
        """Load a page anew."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Return the value of an expression, or of its promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            told = answer["exceptionDetails"]
            raise BrowserError(f"{script[:120]}: {told.get('exception', {}).get('description', told['text'])}")
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until an expression holds in the page."""
        end = time.monotonic() + seconds
        while True:
            try:
                if self.run(
                    f"Promise.race([new Promise(done => {{ const look = () => ({condition}) ? done(true) : requestAnimationFrame(look); look(); }}), new Promise(done => setTimeout(done, 1000, false))])"
                ):
                    return
            except BrowserError as error:
                # The page went away while it was asked, or is not there yet.
                if time.monotonic() > end:
                    raise BrowserError(f"{condition}: {error}") from error
            if time.monotonic() > end:
                text = self.run("document.body.innerText.slice(0, 1500)")
                raise BrowserError(f"did not come about: {condition}\n{text}\n{self.problems}")

    def settle(self) -> None:
        """Wait until nothing on the page is loading."""
        self.wait("document.querySelector('h1') && !document.querySelector('.loading, [aria-busy=true]')")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key: one of KEYS, or a character."""
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        name = " " if key == "Space" else key
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            **common,
            **({"text": text} if text else {}),
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the first element of a selector, once it is there."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def say(self, label: str) -> None:
        """Click the first button or link that says just this, once it is there."""
        find = f"[...document.querySelectorAll('button,a,summary,[role=tab]')].find(one => one.textContent.trim() === {json.dumps(label)} && one.checkVisibility())"
        self.wait(f"{find}")
        self.run(f"{find}.click()")

    def screenshot(self, path: Path, *, whole: bool = True, kind: str = "png") -> None:
        """Keep a picture of the page, of all of it or of what the screen shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = self.call("Page.captureScreenshot", format=kind, captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def check(self) -> None:
        """Fail if the console told of any problem since it was last asked."""
        self.browser.drain()
        problems, self.problems = self.problems, []
        assert not problems, problems

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            told = params["exceptionDetails"]
            self.problems.append(str(told.get("exception", {}).get("description", told["text"])))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.problems.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append((params["request"]["method"], params["request"]["url"]))
