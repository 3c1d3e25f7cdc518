"""A real browser with the width of a desktop or a phone, in a light or dark colour scheme."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

INSTALLER = Path(__file__).parents[3] / "deploy" / "chromium.sh"
DESKTOP, PHONE = (1280, 900), (320, 690)
Scheme = Literal["light", "dark"]


@contextmanager
def chromium(folder: Path) -> Iterator[Chrome]:
    """Start Chromium, and install it first if it is missing. It writes only below `folder`."""
    installation = subprocess.run([INSTALLER], check=False, capture_output=True, text=True)
    assert installation.returncode == 0, installation.stderr
    browser, driver = installation.stdout.split()
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        f"user-data-dir={folder}",
        "hide-scrollbars",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})  # this log shows violations of the policy
    started = Chrome(options, ChromeService(driver))
    try:
        yield started
    finally:
        started.quit()


def open_page(browser: Chrome, address: str, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light") -> None:
    """Open a page with this window size and colour scheme."""
    width, height = size
    is_phone = width < DESKTOP[0]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)


def save_picture(browser: Chrome, file: Path) -> None:
    """Save a picture of the whole page, not only of its visible part."""
    height = browser.execute_script("return document.documentElement.scrollHeight")
    width = browser.execute_script("return window.innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    import base64  # noqa: PLC0415 - only here

    file.write_bytes(base64.b64decode(shot["data"]))
