"""Headless Chromium driven through its debugging pipe, with nothing but the standard library."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe", "--force-color-profile=srgb",
]


class BrowserError(Exception):
    pass


class Browser:
    """One browser with one page. Use as a context manager."""

    def __init__(self, time_limit_s=60):
        self.time_limit_s = time_limit_s
        self.exceptions = []  # texts of uncaught script errors, console errors and refused loads
        self.requests = []  # every address the page asked for
        self._profile = tempfile.mkdtemp(prefix="assay-browser.")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def child():
            # The browser reads commands from descriptor 3 and answers on 4. Both are first moved out of the way.
            high = [os.dup2(to_read, 60), os.dup2(to_write, 61)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._log = open(os.path.join(self._profile, "browser.log"), "wb")
        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, close_fds=False, preexec_fn=child,
            start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._next_id = 0
        self._session = None
        self._events = []
        try:
            target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
            self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self._call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._read, self._write):
            os.close(descriptor)
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise BrowserError("the browser did not answer in time")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise BrowserError("the browser ended: " + pathlib.Path(self._log.name).read_text(errors="replace")[-800:])
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        if "id" not in message:
            self._note(message)
        return message

    def _note(self, message):
        method, params = message["method"], message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.exceptions.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.exceptions.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _call(self, method, params=None):
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.time_limit_s
        while True:
            answer = self._receive(deadline)
            if answer.get("id") != message["id"]:
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def set_view(self, width, height=900, scheme="light", scale=1, media="", scripts=True):
        """Size in CSS pixels; scheme is what the system prefers; media "print" shows the page as printed."""
        self._call("Emulation.setDeviceMetricsOverride",
                   {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False})
        self._call("Emulation.setEmulatedMedia",
                   {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self._call("Emulation.setScriptExecutionDisabled", {"value": not scripts})

    def open(self, path, fragment=""):
        """Loads the page afresh; exceptions and requests are its own."""
        self._navigate("about:blank")  # from a page to its own fragment nothing would be loaded
        self.exceptions.clear()
        self.requests.clear()
        self._navigate(pathlib.Path(path).resolve().as_uri() + fragment)

    def _navigate(self, url):
        self._events.clear()
        result = self._call("Page.navigate", {"url": url})
        if result.get("errorText"):
            raise BrowserError(f"{url}: {result['errorText']}")
        deadline = time.monotonic() + self.time_limit_s
        while "Page.loadEventFired" not in self._events:
            self._receive(deadline)

    def evaluate(self, expression):
        result = self._call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def move_pointer(self, x, y):
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def type(self, text):
        self._call("Input.insertText", {"text": text})

    def screenshot(self, full_page=False):
        """PNG bytes."""
        params = {"format": "png"}
        if full_page:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            params |= {"captureBeyondViewport": True,
                       "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        return base64.b64decode(self._call("Page.captureScreenshot", params)["data"])

    def pdf(self):
        return base64.b64decode(self._call("Page.printToPDF", {"printBackground": True})["data"])
