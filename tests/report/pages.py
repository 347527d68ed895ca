#!/usr/bin/python3
"""Opens pages in a headless Chromium as a phone, a desktop in the light and in the dark, and a printer would, and checks
what a reader would see. Speaks the DevTools protocol over the browser's own pipe, so it needs no port and no library.

    pages.py [--shots FOLDER] PAGE...

Checked: nothing is written to the console, nothing is fetched, nothing is wider than the screen, every figure has a
picture with something in it and finite numbers only, labels of a picture do not overlap and stay inside of it, text
stands out from what is behind it, and the page prints."""
import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

VIEWS = {  # name: width, height, how many pixels a unit has, mobile, dark
    "phone": (390, 844, 2, True, False),
    "desktop": (1280, 900, 1, False, False),
    "dark": (1280, 900, 1, False, True),
}
CONTRAST_MIN = 4.5  # WCAG 2 AA, text of normal size

CHECK = r"""
(() => {
  const found = [];
  const complain = (text) => { if (found.length < 20) found.push(text); };
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth)
    complain(`the page is ${root.scrollWidth} wide, the screen ${root.clientWidth}`);
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest(".wide, pre, details")) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > root.clientWidth + 0.5)
      complain(`<${element.tagName}> reaches to ${box.right} of ${root.clientWidth}: ${element.textContent.slice(0, 40)}`);
  }

  /* pictures */
  const figures = document.querySelectorAll("figure");
  if (figures.length === 0) complain("no figure");
  for (const figure of figures) {
    const title = figure.querySelector("h3") ? figure.querySelector("h3").textContent : "no title";
    const picture = figure.querySelector("svg");
    if (!picture || picture.getBoundingClientRect().width < 100) { complain(`${title}: no picture`); continue; }
    const drawn = picture.querySelectorAll("path.line, rect, path.cell");
    if (drawn.length === 0) complain(`${title}: an empty picture`);
    for (const element of picture.querySelectorAll("*"))
      for (const attribute of element.attributes)
        if (/nan|inf|undefined/i.test(attribute.value) && attribute.name !== "aria-label")
          complain(`${title}: ${attribute.name} is ${attribute.value.slice(0, 60)}`);
    for (const line of picture.querySelectorAll("path.line"))
      if (line.getAttribute("d") !== "" && line.getTotalLength() === 0 && line.getAttribute("d").includes("L"))
        complain(`${title}: a line without length`);
    const labels = [...picture.querySelectorAll("text")].filter((label) => label.getClientRects().length > 0);
    const boxes = labels.map((label) => label.getBoundingClientRect());
    const around = picture.getBoundingClientRect();
    for (let i = 0; i < boxes.length; i++) {
      const a = boxes[i];
      if (a.left < around.left - 1 || a.right > around.right + 1 || a.top < around.top - 2 || a.bottom > around.bottom + 2)
        complain(`${title}: the label ${labels[i].textContent} leaves the picture`);
      for (let j = 0; j < i; j++) {
        const b = boxes[j];
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
          complain(`${title}: the labels ${labels[j].textContent} and ${labels[i].textContent} overlap`);
      }
    }
  }

  /* text against what is behind it */
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const parts = channels(colour);
      if (parts.length === 3 || parts[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrasts = new Map();
  for (const element of document.querySelectorAll("h1, h2, h3, p, li, th, td, pre, code, figcaption, summary, footer, svg text")) {
    if (element.getClientRects().length === 0) continue;
    const style = getComputedStyle(element);
    const colour = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const back = behind(element);
    const key = colour + " on " + back;
    if (contrasts.has(key)) continue;
    const a = luminance(colour), b = luminance(back);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    contrasts.set(key, contrast);
    if (contrast < CONTRAST_MIN) complain(`<${element.tagName}> ${key}: contrast ${contrast.toFixed(2)}`);
  }
  return {found, figures: figures.length, back: behind(document.body),
          size: [root.scrollWidth, root.scrollHeight]};
})()
""".replace("CONTRAST_MIN", str(CONTRAST_MIN))


class Browser:
    """A headless browser of its own profile, and one page in it."""

    def __init__(self, program, profile):
        to_browser, self.input = os.pipe()
        self.output, from_browser = os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-extensions",
                   "--hide-scrollbars", "--user-data-dir=" + profile, "--remote-debugging-pipe"]

        def place():  # it reads from 3 and writes to 4
            spare_in, spare_out = os.dup(to_browser), os.dup(from_browser)
            os.dup2(spare_in, 3)
            os.dup2(spare_out, 4)

        self.log = open(os.path.join(profile, "browser.log"), "wb")
        self.process = subprocess.Popen(command, preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        os.close(to_browser)
        os.close(from_browser)
        self.bytes, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.bytes:
            got = os.read(self.output, 1 << 20)
            if not got:
                raise SystemExit("the browser has gone")
            self.bytes += got
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.input, data):]
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, url):
        """Loads a page; returns what it fetched and what it complained of."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())
        self.evaluate("0")  # what was on its way has arrived
        fetched, complaints = [], []
        for event in self.events:
            if event.get("method") == "Network.requestWillBeSent":
                fetched.append(event["params"]["request"]["url"])
            elif event.get("method") == "Runtime.exceptionThrown":
                complaints.append("an exception")
            elif event.get("method") == "Runtime.consoleAPICalled":
                complaints.append("console: " + event["params"]["type"])
            elif event.get("method") == "Log.entryAdded":
                complaints.append("log: " + event["params"]["entry"]["text"])
        return fetched, complaints

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"the check itself failed: {result['exceptionDetails']}")
        return result["result"].get("value")

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(timeout=1800)
        self.log.close()


def save(folder, name, data):
    if folder:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(base64.b64decode(data))


def shoot(browser, folder, name, size):
    """The whole page, in pieces that can be looked at."""
    if not folder:
        return
    width, height, piece = size[0], size[1], 1600
    for number, top in enumerate(range(0, height, piece)):
        clip = {"x": 0, "y": top, "width": width, "height": min(piece, height - top), "scale": 1}
        shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        save(folder, f"{name}-{number:02}.png", shot["data"])


def check_view(browser, page, view, folder):
    width, height, scale, is_mobile, is_dark = VIEWS[view]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                 mobile=is_mobile)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
    url = "file://" + os.path.abspath(page)
    fetched, complaints = browser.open(url)
    complaints += [f"fetches {other}" for other in fetched if other != url]
    result = browser.evaluate(CHECK)
    complaints += result["found"]
    lightness = sum(int(part) for part in result["back"].strip("rgb()").split(",")[:3])
    if (lightness < 384) != is_dark:
        complaints.append(f"the background is {result['back']}")
    name = os.path.splitext(os.path.basename(page))[0]
    shoot(browser, folder, f"{name}-{view}", result["size"])
    return [f"{page}: {view}: {text}" for text in complaints], result["figures"]


def check_print(browser, page, folder):
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open("file://" + os.path.abspath(page))
    # A4, within its margins, in units of 1/96 inch: nothing may be wider.
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)
    wide = browser.evaluate("document.documentElement.scrollWidth")
    back = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    size = [718, browser.evaluate("document.documentElement.scrollHeight")]
    shoot(browser, folder, os.path.splitext(os.path.basename(page))[0] + "-print", size)
    data = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)["data"]
    save(folder, os.path.splitext(os.path.basename(page))[0] + ".pdf", data)
    pdf = base64.b64decode(data)
    complaints = []
    if not pdf.startswith(b"%PDF-") or len(pdf) < 10000:
        complaints.append(f"{page}: print: {len(pdf)} bytes that begin with {pdf[:8]}")
    if wide > 718:
        complaints.append(f"{page}: print: {wide} wide on paper that has 718")
    if back != "rgb(255, 255, 255)":
        complaints.append(f"{page}: print: paper is {back}")
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    return complaints


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--shots")
    options.add_argument("pages", nargs="+")
    arguments = options.parse_args()
    program = shutil.which("chromium")
    if program is None:
        print("skipped: no chromium")
        return 77
    complaints = []
    with tempfile.TemporaryDirectory(prefix="flatcake-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        for page in arguments.pages:
            for view in VIEWS:
                found, figures = check_view(browser, page, view, arguments.shots)
                complaints += found
            complaints += check_print(browser, page, arguments.shots)
            print(f"{os.path.basename(page)}: {figures} figures")
        browser.close()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
