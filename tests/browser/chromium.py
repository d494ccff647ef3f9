"""The Chromium that tests drive with Playwright."""

import os
import shutil
import subprocess
from pathlib import Path

SECONDS = 900


def installed() -> str | None:
    """Return the browser: that of CHROMIUM, or this machine's; None if there is none."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def chromium(python: Path) -> str:
    """Return the browser; empty for Playwright's own, which is fetched if there is no other."""
    browser = installed()
    if not browser:
        subprocess.run([python, "-m", "playwright", "install", "chromium"], check=True, timeout=SECONDS)
    return browser or ""
