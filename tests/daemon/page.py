#!/usr/bin/python3
"""Looks at flatcaked's status page through a headless Chromium, as tests/report/pages.py looks at reports: on a phone, on a
desktop in the light and in the dark, while the daemon behind it goes on.

    page.py [--shots FOLDER] [--segments-min N] [--view NAME] URL
    page.py --gone URL PID        the page while process PID, the daemon, ends

Checked: the page asks its own daemon only and writes nothing to the console; what it shows is what /v1/... says; the map
has as many coloured cells as there are bytes in use, in many colours, and goes on; pointing and clicking tell whose
bytes they are; nothing is wider than the screen, and text stands out from what is behind it."""
import argparse
import base64
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
from pages import VIEWS, Browser  # noqa: E402

CHECK = r"""
(() => {
  const found = [], root = document.documentElement, text = (id) => document.getElementById(id).textContent;
  const complain = (sentence) => { if (found.length < 20) found.push(sentence); };
  if (root.scrollWidth > root.clientWidth) complain(`the page is ${root.scrollWidth} wide, the screen ${root.clientWidth}`);
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest(".scroll")) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > root.clientWidth + 0.5)
      complain(`<${element.tagName}> reaches to ${box.right} of ${root.clientWidth}: ${element.textContent.slice(0, 40)}`);
  }
  for (const id of ["hitrate", "bandwidth", "loadtime", "limit", "hitall", "loadtails"])
    if (/n\/a|NaN|undefined|Infinity|^$/.test(text(id))) complain(`${id} is "${text(id)}"`);
  for (const cell of document.querySelectorAll("td, .under span, .maphead span"))
    if (/NaN|undefined|Infinity|null/.test(cell.textContent)) complain(`a text is "${cell.textContent}"`);
  const priorities = [...document.querySelectorAll("#waiters tr")].map((row) => row.lastChild.textContent)
    .filter((value) => /^[\d.]+$/.test(value)).map(Number);
  for (let at = 1; at < priorities.length; at++)
    if (priorities[at] > priorities[at - 1]) complain(`waiters are not in order of priority: ${priorities}`);

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
      const colour = getComputedStyle(at).backgroundColor, parts = channels(colour);
      if (parts.length === 3 || parts[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const element of document.querySelectorAll("h1, h2, th, td, span, .figure, #told, #rule")) {
    if (element.getClientRects().length === 0 || element.textContent === "") continue;
    const a = luminance(getComputedStyle(element).color), b = luminance(behind(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) complain(`"${element.textContent.slice(0, 30)}": contrast ${contrast.toFixed(2)}`);
  }
  const map = (id) => {
    const canvas = document.getElementById(id), colours = new Set();
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    let used = 0, all = 0, sum = 0;
    for (let row = 2; row < canvas.height; row += 5) for (let column = 0; column < canvas.width; column++) {
      const pixel = pixels[row * canvas.width + column];
      const isFreed = (pixel & 0xffffff) === 0x6d4dff || pixel >>> 24 < 0xf8;
      all++;
      if (!isFreed) { used++; colours.add(pixel); }
      sum = (sum * 31 + pixel) >>> 0;
    }
    return {share: used / all, colours: colours.size, sum};
  };
  return {found, state: text("state"), clients: document.querySelectorAll("#clients tr").length,
          spaces: document.querySelectorAll("#namespaces tr").length, ssd: map("map-ssd"), memory: map("map-memory"),
          back: behind(document.body), size: [root.scrollWidth, root.scrollHeight]};
})()
"""

# Points at a place of the map that somebody uses; then clicks on it.
POINT = r"""
(() => {
  const canvas = document.getElementById("map-ssd"), box = canvas.getBoundingClientRect(), context = canvas.getContext("2d");
  const at = {clientX: box.left + box.width * 0.43, clientY: box.top + box.height * 0.52, bubbles: true};
  const opaque = () => {
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let pixel = 3; pixel < data.length; pixel += 4) count += data[pixel] > 240;
    return count;
  };
  canvas.dispatchEvent(new MouseEvent("mousemove", at));
  const told = document.getElementById("told").textContent, before = opaque();
  canvas.dispatchEvent(new MouseEvent("click", at));
  const picked = opaque();
  canvas.dispatchEvent(new MouseEvent("click", at));
  return {told, before, picked, after: opaque()};
})()
"""


def ask(url, path):
    with urllib.request.urlopen(url + path, timeout=1800) as answer:
        return json.loads(answer.read())


def wait_for(browser, expression):
    for _ in range(18000):
        if browser.evaluate(expression):
            return True
        time.sleep(0.1)
    return False


def complaints_of(browser, url):
    found = []
    for event in browser.events:
        method = event.get("method")
        if method == "Network.requestWillBeSent" and not event["params"]["request"]["url"].startswith(url):
            found.append("asks " + event["params"]["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            found.append("an exception: " + json.dumps(event["params"]["exceptionDetails"])[:300])
        elif method == "Runtime.consoleAPICalled":
            found.append("console: " + event["params"]["type"])
        elif method == "Log.entryAdded" and "favicon" not in json.dumps(event["params"]):
            text = event["params"]["entry"]["text"]
            if "willReadFrequently" not in text:  # the checks read the canvas, the page never does
                found.append("log: " + text)
    return found


def check_share(status, result, medium):
    arena = next(arena for arena in status["arenas"] if arena["medium"] == medium)
    share = arena["bytes_used"] / arena["bytes"]
    if abs(share - result[medium]["share"]) > 0.04:
        return [f"{medium}: {share:.3f} is in use, {result[medium]['share']:.3f} of the map is coloured"]
    return []


def check_view(browser, url, view, arguments):
    width, height, scale, is_mobile, is_dark = VIEWS[view]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=is_mobile)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
    browser.open(url)
    if not wait_for(browser, "Number(document.documentElement.dataset.updates || 0) >= 3"):
        return ["the page is not updated: failures " + str(browser.evaluate("document.documentElement.dataset.failures"))]
    for _ in range(100):  # the map is of the last update, the status of now, and in between time has passed
        status, result = ask(url, "v1/status"), browser.evaluate(CHECK)
        shares = check_share(status, result, "ssd") + check_share(status, result, "memory")
        if not shares:
            break
        time.sleep(0.1)
    found = result["found"] + shares
    segments = sum(arena["segments"] for arena in status["arenas"])
    if segments < arguments.segments_min:
        found.append(f"{segments} segments only")
    if result["state"] != "ready" or result["clients"] != status["clients"] or result["spaces"] != status["namespaces"]:
        found.append(f"state {result['state']}, {result['clients']} clients, {result['spaces']} namespaces")
    if result["ssd"]["colours"] < 20:
        found.append(f"the map has {result['ssd']['colours']} colours")
    lightness = sum(int(part) for part in result["back"].strip("rgb()").split(",")[:3])
    if (lightness < 384) != is_dark:
        found.append(f"the background is {result['back']}")
    if arguments.shots:
        clip = {"x": 0, "y": 0, "width": result["size"][0], "height": result["size"][1], "scale": 1}
        shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        with open(os.path.join(arguments.shots, f"status-{view}.png"), "wb") as file:
            file.write(base64.b64decode(shot))
    point = browser.evaluate(POINT)
    if not point["told"].startswith("session ") and not point["told"].startswith("free, at"):
        found.append(f"pointing at the map tells \"{point['told']}\"")
    if point["told"].startswith("session ") and not (point["picked"] < point["before"] == point["after"]):
        found.append(f"clicking marks nothing: {point}")
    updates = browser.evaluate("Number(document.documentElement.dataset.updates)")
    wait_for(browser, f"Number(document.documentElement.dataset.updates) >= {updates + 3}")
    if browser.evaluate(CHECK)["ssd"]["sum"] == result["ssd"]["sum"]:
        found.append("the map does not change")
    return found + complaints_of(browser, url)


def check_gone(browser, url, pid):
    browser.open(url)
    if not wait_for(browser, "Number(document.documentElement.dataset.updates || 0) >= 1"):
        return ["the page is not updated"]
    os.kill(pid, signal.SIGTERM)
    if not wait_for(browser, "getComputedStyle(document.getElementById('lost')).display !== 'none'"):
        return ["nothing says that the daemon has gone"]
    words = browser.evaluate("document.getElementById('lost').textContent")
    return [] if words.startswith("no answer for") else [f"it says \"{words}\""]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--shots")
    options.add_argument("--segments-min", type=int, default=0)
    options.add_argument("--gone", action="store_true")
    options.add_argument("--view", choices=VIEWS, help="this one alone")
    options.add_argument("url")
    options.add_argument("pid", nargs="?", type=int)
    arguments = options.parse_args()
    complaints = []
    with tempfile.TemporaryDirectory(prefix="flatcake-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(shutil.which("chromium"), profile)
        if arguments.gone:
            complaints += check_gone(browser, arguments.url, arguments.pid)
        for view in [] if arguments.gone else [arguments.view] if arguments.view else VIEWS:
            complaints += [f"{view}: {text}" for text in check_view(browser, arguments.url, view, arguments)]
        browser.close()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
