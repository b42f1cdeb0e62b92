# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through chromedriver by the WebDriver protocol (W3C), of which these tests need little."""
import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

WAIT_S = 60
# None of these is about the page: the browser itself asks for updates otherwise.
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--window-size=1400,1000", "--force-device-scale-factor=1"]


def missing():
    """The missing program, or None."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if not shutil.which(program):
            return f"there is no {program} (Debian package {package})"
    return None


class Browser:
    def __init__(self):
        self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        for line in self.driver.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                break
        self.root = f"http://127.0.0.1:{port.group(1)}/session"
        options = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                   "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": ARGUMENTS}}
        self.session = None
        self.session = self.ask("POST", "", {"capabilities": {"alwaysMatch": options}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.session:
            self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def ask(self, method, path, body=None):
        url = self.root + (f"/{self.session}" if self.session else "") + path
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def open(self, path):
        """Opens a file, and waits until the page reports that it is drawn."""
        self.ask("POST", "/url", {"url": f"file://{path}"})
        self.until("return document.body.dataset.ready === 'yes'")

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, script, *arguments):
        end = time.monotonic() + WAIT_S
        while not self.run(script, *arguments):
            if time.monotonic() > end:
                raise RuntimeError(f"not within {WAIT_S} s: {script}")
            time.sleep(0.05)

    def find(self, selector):
        (element,) = self.ask("POST", "/element", {"using": "css selector", "value": selector}).values()
        return element

    def click(self, selector):
        """In the middle of the screen, where it has stayed for a moment: what was done before may still move the page."""
        self.until("""const element = document.querySelector(arguments[0]), seen = window.whereItWas;
            element.scrollIntoView({block: 'center', behavior: 'instant'});
            window.whereItWas = arguments[0] + JSON.stringify(element.getBoundingClientRect());
            return seen === window.whereItWas""", selector)
        self.ask("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self.ask("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def clear(self, selector):
        self.ask("POST", f"/element/{self.find(selector)}/clear")

    def size(self, width, height):
        """Size of the page, without the browser's own parts: a window has a minimum size."""
        self.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})

    def said(self):
        """Console messages of the page: errors, and loads that its policy blocked."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def shot(self, path):
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))
